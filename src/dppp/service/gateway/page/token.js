// The querier's token: from the address's fragment or from a form, kept in this tab only.

const PLACE = "dppp token";

export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(PLACE, given);
    history.replaceState(null, "", location.pathname + "#live");
  }
  return sessionStorage.getItem(PLACE);
}

export const keepToken = (token) => sessionStorage.setItem(PLACE, token);
export const forgetToken = () => sessionStorage.removeItem(PLACE);
