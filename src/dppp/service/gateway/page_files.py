"""The page's own files: read once, served by name, nothing else of the disk."""

from importlib import resources

from fastapi import FastAPI, HTTPException, Response

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {"Cache-Control": "no-cache"}


def add_page(app: FastAPI) -> None:
    """Serve the page at / and its files at /page/…; neither needs a token nor says anything."""
    files = read_page()

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return _answer(files, "index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        return _answer(files, name)


def read_page() -> dict[str, bytes]:
    """Every file of the page, by its name."""
    folder = resources.files("dppp.service.gateway") / "page"
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in _KINDS
    }


def _answer(files: dict[str, bytes], name: str) -> Response:
    if name not in files:
        raise HTTPException(404, "the page has no such file; open /")
    return Response(files[name], media_type=_KINDS[name.rpartition(".")[2]], headers=_HEADERS)
