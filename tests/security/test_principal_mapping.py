import pytest

from ottla.security.principal_mapping import NoRuleError, PrincipalMapping

# The cases of Kafka's SslPrincipalMapperTest.
RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_decides(name: str, mapped: str) -> None:
    assert PrincipalMapping(RULES).name_of(name) == mapped


@pytest.mark.parametrize(
    ("rule", "mapped"),
    [
        (r"RULE:^CN=(.*?),.*$/$1$2/", "a$2"),
        (r"RULE:^CN=(.*?),.*$/$12/", "a2"),
        (r"RULE:^CN=(.*?),.*$/\$1/", "$1"),
        (r"RULE:^CN=(.*?),.*$/a\/b/", "a/b"),
        (r"RULE:^CN=(.*?),.*$/$0/U", "CN=A,OU=B"),
        ("", None),
        ("RULE:^CN=(b).*$/$1/", None),
        # The whole name must match.
        ("RULE:CN=a/$0/", None),
    ],
)
def test_replacements(rule: str, mapped: str | None) -> None:
    mapping = PrincipalMapping(rule)
    if mapped is None:
        with pytest.raises(NoRuleError, match="No rules apply to CN=a,OU=b"):
            mapping.name_of("CN=a,OU=b")
    else:
        assert mapping.name_of("CN=a,OU=b") == mapped


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU",
        "RULE:^CN=(.*?/$1/L",
    ],
)
def test_invalid_rules(rules: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        PrincipalMapping(rules)
