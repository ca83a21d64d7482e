"""A member's part in a change: ask for new keys, sign the change, and set up under it.

What a member has is in two homes then, the old and the new one. The old one stays as it is, so that
what was charged under the old task can still be opened, and its transcripts verified.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from dppp.errors import ChangeNotAsked, FederationError, InputError
from dppp.service.ceremony.carrying import carried_configuration
from dppp.service.ceremony.change import (
    CHANGE,
    Change,
    Movement,
    SignedBy,
    consent_statement,
    find_member,
    rotation_statement,
)
from dppp.service.ceremony.change_letters import ROTATION, Consent, Rotation, as_member
from dppp.service.ceremony.configurations import DEFAULT_LISTEN
from dppp.service.ceremony.federation_file import FederationFile, require_hash
from dppp.service.ceremony.home import (
    NATS_SEED,
    REQUEST,
    SEALING_KEY,
    SIGNING_KEY,
    TLS_CERTIFICATE,
    TLS_KEY,
    Home,
    make_home,
)
from dppp.service.ceremony.setup import SetUp, set_up
from dppp.service.stores.locations import LedgerFiles
from dppp.service.stores.new_files import PUBLIC, NewFile, read_file, write_new_files

_KEYS = (SIGNING_KEY, SEALING_KEY, NATS_SEED, TLS_KEY)


def rotate_keys(home: Home, new_folder: Path) -> Rotation:
    """Member: a new home with new keys under the same name, and the old key's word for them."""
    joined, federation = home.request(), home.federation(None)
    require_in(federation, home)
    request = make_home(
        new_folder,
        name=joined.name,
        role=joined.role,
        hosts=joined.identity.hosts,
        records=joined.records,
    )
    statement = rotation_statement(federation.task.task_id, as_member(request))
    rotation = Rotation(
        request=request,
        task_id=federation.task.task_id,
        signature=home.signing_key().sign(statement),
    )
    write_new_files(new_folder, [NewFile(name=ROTATION, data=rotation.to_bytes(), mode=PUBLIC)])
    return rotation


def sign_change(
    home: Home,
    change: Change,
    expected_hash: bytes,
    *,
    new_home: Home | None = None,
    replaced: Collection[str] = (),
) -> Consent:
    """Teacher: its consent to the change whose hash was compared; nothing in its ledger changes.

    `replaced` names those who get keys that their own key did not ask for: the operator has spoken
    to each of them. `new_home` is this teacher's, where it has asked for new keys.
    """
    require_hash(change.new, expected_hash)
    require_hash(home.federation(None), change.old.hash)
    name = home.request().name
    require_in(change.old, home)
    _require_asked(change, name, new_home)
    unasked = {who for who, what in change.movements() if what is Movement.REPLACED}
    if unasked != set(replaced):
        wrong = sorted(unasked.symmetric_difference(replaced))[0]
        raise ChangeNotAsked(
            f"the change gives {wrong} keys that its own key did not ask for"
            if wrong in unasked
            else f"{wrong} is not replaced by this change",
            hint=(
                "telephone each that is shown as replaced; if its keys are lost or stolen and the "
                "new ones are its own, say --replaced NAME for each, and for nobody else"
            ),
        )
    signature = home.signing_key().sign(consent_statement(change.old, change.new))
    signed = SignedBy(name=name, signature=signature)
    change.with_consents([signed])  # which refuses one who is not a teacher of the old task
    return Consent(federation_hash=change.new.hash, signed=signed)


def install_change(
    home: Home,
    change: Change,
    expected_hash: bytes,
    *,
    old_home: Home | None = None,
    servers: Sequence[str] = (),
    listen: str = DEFAULT_LISTEN,
    ledger: LedgerFiles | None = None,
) -> SetUp:
    """Everybody who is in the new federation: set up a home for it.

    One who was in the old federation names the old home: its keys are taken from there unless it
    has new ones, and so is its configuration.
    """
    change.require_signed()
    require_hash(change.new, expected_hash)
    carried = None
    if old_home is not None:
        require_hash(old_home.federation(None), change.old.hash)
        if not (home.folder / SIGNING_KEY).exists():
            _copy_keys(old_home, home.folder, change)
        carried = carried_configuration(old_home, home, change.new)
    done = set_up(
        home,
        change.new,
        expected_hash,
        servers=servers,
        listen=listen,
        ledger=ledger,
        carried=carried,
    )
    write_new_files(home.folder, [NewFile(name=CHANGE, data=change.to_bytes(), mode=PUBLIC)])
    return done


def require_in(federation: FederationFile, home: Home) -> None:
    """Refuse a home that is not of this federation."""
    member = find_member(federation, home.request().name)
    own = home.signing_key().public_key().public_bytes_raw()
    if member is None or member.signing_key != own:
        raise FederationError(
            f"{home.folder} is not the home of a member of the old federation",
            hint="give the home in which the old task runs",
        )


def _require_asked(change: Change, name: str, new_home: Home | None) -> None:
    """A rotation may have been asked for by whoever stole the old key."""
    movement = change.movement_of(name)
    if movement in (Movement.KEPT, Movement.REMOVED):
        return
    member = find_member(change.new, name)
    if new_home is None:
        raise ChangeNotAsked(
            f"the change gives {name}, which is you, other keys than you have",
            hint=(
                "if you asked for that, name the new home (--new-home); if you did not, "
                "telephone the others: your key may be stolen"
            ),
        )
    own = new_home.signing_key().public_key().public_bytes_raw()
    if member is None or member.signing_key != own:
        raise ChangeNotAsked(
            f"the keys that the change gives {name} are not those of {new_home.folder}",
            hint="telephone the others: somebody asked in your name",
        )


def _copy_keys(old_home: Home, folder: Path, change: Change) -> None:
    """The keys stay the same; a TLS certificate goes with them only if it was renewed."""
    require_in(change.old, old_home)
    files = [
        NewFile(name=name, data=read_file(old_home.folder / name))
        for name in _KEYS
        if (old_home.folder / name).exists()
    ]
    request = old_home.folder / REQUEST
    files.append(NewFile(name=REQUEST, data=read_file(request), mode=PUBLIC))
    member = find_member(change.old, old_home.request().name)
    renewed = read_file(old_home.folder / TLS_CERTIFICATE)
    if member is None:
        raise InputError(f"{old_home.folder} is not of the old federation", hint="name another")
    if renewed != member.tls_certificate.encode("ascii"):
        files.append(NewFile(name=TLS_CERTIFICATE, data=renewed, mode=PUBLIC))
    write_new_files(folder, files)
