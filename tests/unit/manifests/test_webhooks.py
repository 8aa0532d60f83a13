"""The webhooks: paths, ports and rights."""

from reserver.settings.serve import WEBHOOK_SERVICE
from reserver.webhook.certificate_secret import CONFIGURATIONS, SECRET
from reserver.webhook.handlers import PATCH_PATH, PATIENCE_S, RESIZE_PATH
from tests.unit.manifests.documents import MANIFESTS, documents

WEBHOOKS = "components/webhooks"


def test_the_webhooks_lead_to_what_reserver_serves() -> None:
    (service,) = documents(f"{WEBHOOKS}/service.yaml")
    assert service["metadata"]["name"] == WEBHOOK_SERVICE
    hooks = {
        f"/apis/{each['apiVersion']}/{each['kind'].lower()}s/{each['metadata']['name']}": hook
        for each in documents(f"{WEBHOOKS}/configurations.yaml")
        for hook in each["webhooks"]
    }
    assert set(hooks) == set(CONFIGURATIONS)
    targets = [hook["clientConfig"]["service"] for hook in hooks.values()]
    assert [target["path"] for target in targets] == [PATCH_PATH, RESIZE_PATH]
    assert {target["name"] for target in targets} == {WEBHOOK_SERVICE}
    for hook in hooks.values():
        # No namespace waits for Reserver, and no pod longer than for its slot.
        assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "NoneOnDryRun")
        assert hook["timeoutSeconds"] >= 2 * PATIENCE_S
        spared, _ = hook["namespaceSelector"]["matchExpressions"]
        assert set(spared["values"]) == {"kube-system", "reserver-system"}


def test_the_webhooks_port_is_closed_until_addresses_are_named() -> None:
    """The port asks no client for a certificate; a rule without `from` would admit all clients."""
    (component,) = documents(f"{WEBHOOKS}/kustomization.yaml")
    assert not [each for each in component["patches"] if each["target"]["kind"] == "NetworkPolicy"]
    policies = [
        each
        for folder in ("base", "standby", WEBHOOKS)
        for path in (MANIFESTS / folder).glob("*.yaml")
        for each in documents(f"{folder}/{path.name}")
        if each.get("kind") == "NetworkPolicy"
    ]
    assert {each["metadata"]["name"] for each in policies} == {"reserver-scheduler", "reserver"}
    for policy in policies:
        assert "Ingress" in policy["spec"]["policyTypes"]
        ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        assert "webhooks" not in ports


def test_the_webhooks_need_these_rights_and_no_others() -> None:
    granted = {
        (each["kind"], resource, name, verb)
        for each in documents(f"{WEBHOOKS}/rbac.yaml")
        for rule in each.get("rules", ())
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ("",))
        for verb in rule["verbs"]
    }
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert granted == {
        *(("ClusterRole", "schedpatches", "", verb) for verb in ("list", "watch", "delete")),
        ("ClusterRole", "schedpatches/status", "", "patch"),
        *(("ClusterRole", kind, "reserver", verb) for kind in kinds for verb in ("get", "patch")),
        ("Role", "secrets", "", "create"),
        *(("Role", "secrets", SECRET, verb) for verb in ("get", "update")),
    }
