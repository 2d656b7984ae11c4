from ottla.controller import layout
from ottla.controller.first_users import first_users
from ottla.controller.loading import first_writes, load_image
from ottla.controller.plan import decided
from ottla.controller.users import credential, iterations_of
from ottla.coordination.embedded_store import EmbeddedStore
from ottla.security.sasl.scram import credential_of, salted_password

TEXT = (
    "SCRAM-SHA-256=[name=a,password=p];SCRAM-SHA-512=[name=a,password=p];"
    "SCRAM-SHA-256=[name=b,password=p]"
)


def test_a_new_cluster_has_them() -> None:
    salts = (bytes([number]) * 16 for number in range(6))
    store = EmbeddedStore(None)
    writes = first_writes({}, "cluster", first_users(TEXT, salts.__next__))
    # After a crash between them, the next start makes the users again.
    paths = [each.path for each in writes]
    assert paths.index("/config/users/a") < paths.index(layout.CLUSTER_ID)
    store.multi(writes, 1)
    nodes = store.read_tree("/")
    image = decided(load_image(nodes, 1))
    assert [iterations_of(image.users[name]) for name in ("a", "b")] == [
        {1: 4096, 2: 4096},
        {1: 4096},
    ]
    kept = credential(image, "SCRAM-SHA-256", "a")
    assert kept is not None
    salted = salted_password("SCRAM-SHA-256", "p", kept.salt, 4096)
    assert kept == credential_of("SCRAM-SHA-256", salted, kept.salt, 4096)
    assert first_writes(nodes, "cluster", first_users(TEXT, salts.__next__)) == ()
