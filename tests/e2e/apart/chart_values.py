"""The field of a manifest that each value of the chart sets."""

from __future__ import annotations

from typing import Any, NamedTuple


class Arrival(NamedTuple):
    """A value of the chart, and its effect.

    Attributes:
        value: the value for Helm; `{...}` is YAML.
        found: kind, name and path of the field; a number in the path is an index of a list.
        expected: the field, or a part of its text or list; None if the object is absent.
        beside: other values that this value requires.
    """

    value: str
    found: str
    expected: Any
    beside: str = ""


POD = "Deployment/reserver-scheduler spec.template.spec"
RESERVER = f"{POD}.initContainers.0"
SCHEDULER = f"{POD}.containers.0"
POLICY = "NetworkPolicy/reserver-scheduler spec"
CONFIG = "ConfigMap/kube-scheduler-configuration data.kube-scheduler.yaml"
ROUNDS = "{rebalance: {enabled: true}}"
MONITORED = "{monitoring: {enabled: true}}"
RULES = "{monitoring: {prometheusRule: {enabled: true}}}"
STANDBY = "{mode: standby}"
MANAGED = "{mode: standby, tls: {certManager: {enabled: true}}}"

ARRIVALS: dict[str, Arrival] = {
    "mode": Arrival("standby", "Service/reserver spec.ports.0.name", "extender"),
    "image.repository": Arrival("r.example/x", f"{RESERVER}.image", "r.example/x:"),
    "image.tag": Arrival('"2.0"', f"{RESERVER}.image", "reserver:2.0"),
    "image.digest": Arrival(
        f"sha256:{'a' * 64}", f"{RESERVER}.image", f"reserver:dev@sha256:{'a' * 64}"
    ),
    "image.pullPolicy": Arrival("Always", f"{RESERVER}.imagePullPolicy", "Always"),
    "imagePullSecrets": Arrival("[pull]", f"{POD}.imagePullSecrets", [{"name": "pull"}]),
    "nameOverride": Arrival("held", "Deployment/held-scheduler metadata.name", "held-scheduler"),
    "fullnameOverride": Arrival("held", "NetworkPolicy/held metadata.name", "held"),
    "serviceAccount.create": Arrival("false", "ServiceAccount/reserver", None),
    "serviceAccount.name": Arrival(
        "held", "ClusterRoleBinding/reserver-kube-scheduler subjects.0.name", "held"
    ),
    "serviceAccount.annotations": Arrival(
        "{a: b}", "ServiceAccount/reserver metadata.annotations", {"a": "b"}
    ),
    "kubeScheduler.repository": Arrival(
        "r.example/ks", f"{SCHEDULER}.image", "r.example/ks:v1.37.0"
    ),
    "kubeScheduler.tag": Arrival("v1.36.2", f"{SCHEDULER}.image", ":v1.36.2"),
    "kubeScheduler.digest": Arrival(
        f"sha256:{'b' * 64}", f"{SCHEDULER}.image", f":v1.37.0@sha256:{'b' * 64}"
    ),
    "kubeScheduler.schedulerName": Arrival("held", f"{CONFIG}.profiles.0.schedulerName", "held"),
    "kubeScheduler.resources": Arrival(
        "{requests: {cpu: 2}}", f"{SCHEDULER}.resources", {"requests": {"cpu": 2}}
    ),
    "kubeScheduler.config": Arrival(
        "{parallelism: 32, extenders: [{urlPrefix: 'http://x', filterVerb: f}],"
        " profiles: [{percentageOfNodesToScore: 7}, {schedulerName: other}]}",
        f"{CONFIG}.profiles",
        [
            {"percentageOfNodesToScore": 7, "schedulerName": "reserver-scheduler"},
            {"schedulerName": "other"},
        ],
    ),
    "kubeScheduler.extraArgs": Arrival("[--v=4]", f"{SCHEDULER}.args", ["--v=4"]),
    "kubeScheduler.featureGates": Arrival(
        "{B: false, A: true}", f"{SCHEDULER}.args", ["--feature-gates=A=true,B=false"]
    ),
    "tlsSecret": Arrival(
        "mine",
        "Deployment/reserver spec.template.spec.volumes",
        [{"name": "tls", "secret": {"secretName": "mine"}}],
        STANDBY,
    ),
    "tls.certManager.enabled": Arrival(
        "true", "Certificate/reserver spec.dnsNames", ["reserver.reserver-system.svc"], STANDBY
    ),
    "tls.certManager.issuerRef": Arrival(
        "{kind: ClusterIssuer, name: corp}",
        "Certificate/reserver-kube-scheduler spec.issuerRef",
        {"kind": "ClusterIssuer", "name": "corp"},
        MANAGED,
    ),
    "tls.certManager.duration": Arrival(
        "24h", "Certificate/reserver spec.duration", "24h", MANAGED
    ),
    "tls.certManager.renewBefore": Arrival(
        "8h", "Certificate/reserver spec.renewBefore", "8h", MANAGED
    ),
    "replicas": Arrival("3", "Deployment/reserver-scheduler spec.replicas", 3),
    "configuration": Arrival(
        "{logging: {level: debug}}",
        "ConfigMap/reserver-configuration data.reserver.yaml.logging",
        {"level": "debug"},
    ),
    "settings": Arrival("{log-level: debug}", f"{RESERVER}.args", ["--log-level=debug"]),
    "crds.install": Arrival("false", "CustomResourceDefinition/reservations.reserver.io", None),
    "guard.enabled": Arrival(
        "true", "ValidatingAdmissionPolicy/reserver-guard spec.failurePolicy", "Fail"
    ),
    "tenants.enabled": Arrival(
        "true",
        "ClusterRole/reserver-edit metadata.labels",
        {"rbac.authorization.k8s.io/aggregate-to-edit": "true"},
    ),
    "grpc.enabled": Arrival("true", "Service/reserver spec.ports.0.name", "grpc"),
    "autoscalers.enabled": Arrival("true", f"{RESERVER}.args", ["--keep-held-nodes"]),
    "capacityBuffers.enabled": Arrival(
        "true", f"{RESERVER}.args", ["--capacity-buffers"], "{autoscalers: {enabled: true}}"
    ),
    "lending.enabled": Arrival("true", f"{RESERVER}.args", ["--lending"]),
    "maintenance.enabled": Arrival(
        "true", f"{RESERVER}.args", ["--maintenance-windows"], "{moves: {enabled: true}}"
    ),
    "moves.enabled": Arrival("true", f"{RESERVER}.args", ["--pod-moves"]),
    "surge.enabled": Arrival(
        "true", f"{RESERVER}.args", ["--surge-moves"], "{moves: {enabled: true}}"
    ),
    "provisioning.enabled": Arrival("true", f"{RESERVER}.args", ["--provisioning-requests"]),
    "webhooks.enabled": Arrival(
        "true",
        f"{RESERVER}.args",
        ["--webhook-address=0.0.0.0:9444"],
        "{networkPolicy: {webhooksFrom: [192.0.2.0/28]}}",
    ),
    "rebalance.enabled": Arrival("true", "Deployment/reserver-rebalance spec.replicas", 1),
    "rebalance.run": Arrival(
        "cronjob", "CronJob/reserver-rebalance spec.concurrencyPolicy", "Forbid", ROUNDS
    ),
    "rebalance.interval": Arrival(
        "7m",
        "Deployment/reserver-rebalance spec.template.spec.containers.0.args",
        ["--descheduling-interval=7m"],
        ROUNDS,
    ),
    "rebalance.schedule": Arrival(
        "0 * * * *",
        "CronJob/reserver-rebalance spec.schedule",
        "0 * * * *",
        "{rebalance: {enabled: true, run: cronjob}}",
    ),
    "rebalance.settings": Arrival(
        "{dry-run: true}",
        "Deployment/reserver-rebalance spec.template.spec.containers.0.args",
        ["--dry-run"],
        ROUNDS,
    ),
    "rebalance.policy": Arrival(
        "{kind: DeschedulerPolicy}",
        "ConfigMap/reserver-rebalance-policy data.policy.yaml",
        {"kind": "DeschedulerPolicy"},
        ROUNDS,
    ),
    "rebalance.resources": Arrival(
        "{limits: {memory: 4Gi}}",
        "Deployment/reserver-rebalance spec.template.spec.containers.0.resources",
        {"limits": {"memory": "4Gi"}},
        ROUNDS,
    ),
    "monitoring.enabled": Arrival("true", "Service/reserver-metrics spec.clusterIP", "None"),
    "monitoring.interval": Arrival(
        "7s", "ServiceMonitor/reserver-kube-scheduler spec.endpoints.0.interval", "7s", MONITORED
    ),
    "monitoring.labels": Arrival(
        "{release: x}",
        "ServiceMonitor/reserver metadata.labels",
        {"app.kubernetes.io/name": "reserver", "release": "x"},
        MONITORED,
    ),
    "monitoring.kubeScheduler.enabled": Arrival(
        "false", "ServiceMonitor/reserver-kube-scheduler", None, MONITORED
    ),
    "monitoring.prometheusRule.enabled": Arrival(
        "true", "PrometheusRule/reserver spec.groups.0.name", "reserver-records"
    ),
    "monitoring.prometheusRule.labels": Arrival(
        "{release: x}",
        "PrometheusRule/reserver metadata.labels",
        {"app.kubernetes.io/name": "reserver", "release": "x"},
        RULES,
    ),
    "monitoring.prometheusRule.runbookURL": Arrival(
        "https://d.example/r.html",
        "PrometheusRule/reserver spec.groups.1.rules.0.annotations.runbook_url",
        "https://d.example/r.html#reserverabsent",
        RULES,
    ),
    "monitoring.dashboard.enabled": Arrival(
        "true", "ConfigMap/reserver-dashboard data.reserver.json.uid", "reserver"
    ),
    "monitoring.dashboard.labels": Arrival(
        "{a: b}",
        "ConfigMap/reserver-dashboard metadata.labels",
        {"grafana_dashboard": "1", "a": "b"},
        "{monitoring: {dashboard: {enabled: true}}}",
    ),
    "networkPolicy.enabled": Arrival("false", "NetworkPolicy/reserver-scheduler", None),
    "networkPolicy.apiServerPorts": Arrival(
        "[8443]", f"{POLICY}.egress", [{"ports": [{"port": 8443}]}]
    ),
    "networkPolicy.dns": Arrival(
        "true",
        f"{POLICY}.egress.0.ports",
        [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    ),
    "networkPolicy.otlpPorts": Arrival("[4317]", f"{POLICY}.egress.0.ports", [{"port": 4317}]),
    "networkPolicy.prometheusPorts": Arrival(
        "[9090]",
        "NetworkPolicy/reserver-rebalance spec.egress.0.ports",
        [{"port": 9090}],
        ROUNDS,
    ),
    "networkPolicy.extenderFrom": Arrival(
        "[192.0.2.7/32]",
        "NetworkPolicy/reserver spec.ingress.0.from",
        [{"ipBlock": {"cidr": "192.0.2.7/32"}}],
        STANDBY,
    ),
    "networkPolicy.webhooksFrom": Arrival(
        "[192.0.2.7/32]",
        f"{POLICY}.ingress.1.from",
        [{"ipBlock": {"cidr": "192.0.2.7/32"}}],
        "{webhooks: {enabled: true}, networkPolicy: {webhooksFrom: [192.0.2.0/28]}}",
    ),
    "resources": Arrival("{requests: {cpu: 2}}", f"{RESERVER}.resources", {"requests": {"cpu": 2}}),
    "extraArgs": Arrival("[--history-ttl=1d]", f"{RESERVER}.args", ["--history-ttl=1d"]),
    "extraEnv": Arrival("[{name: A, value: b}]", f"{RESERVER}.env", [{"name": "A", "value": "b"}]),
    "extraVolumes": Arrival(
        "[{name: x, emptyDir: {}}]", f"{POD}.volumes", [{"name": "x", "emptyDir": {}}]
    ),
    "extraVolumeMounts": Arrival(
        "[{name: x, mountPath: /x}]",
        f"{RESERVER}.volumeMounts",
        [{"name": "x", "mountPath": "/x"}],
    ),
    "probes.startup": Arrival(
        "{failureThreshold: 9}", f"{RESERVER}.startupProbe.failureThreshold", 9
    ),
    "probes.readiness": Arrival(
        "{periodSeconds: 9}", f"{RESERVER}.readinessProbe.periodSeconds", 9
    ),
    "probes.liveness": Arrival(
        "{timeoutSeconds: 9}", f"{RESERVER}.livenessProbe.timeoutSeconds", 9
    ),
    "priorityClassName": Arrival("mine", f"{POD}.priorityClassName", "mine"),
    "podLabels": Arrival(
        "{a: b}", "Deployment/reserver-scheduler spec.template.metadata.labels.a", "b"
    ),
    "podAnnotations": Arrival(
        "{a: b}", "Deployment/reserver-scheduler spec.template.metadata.annotations.a", "b"
    ),
    "deploymentAnnotations": Arrival(
        "{a: b}", "Deployment/reserver-scheduler metadata.annotations", {"a": "b"}
    ),
    "serviceAnnotations": Arrival(
        "{a: b}", "Service/reserver metadata.annotations", {"a": "b"}, STANDBY
    ),
    "podSecurityContext": Arrival("{runAsUser: 7}", f"{POD}.securityContext.runAsUser", 7),
    "nodeSelector": Arrival("{a: b}", f"{POD}.nodeSelector", {"a": "b"}),
    "tolerations": Arrival("[{key: a}]", f"{POD}.tolerations", [{"key": "a"}]),
    "affinity": Arrival("{nodeAffinity: {}}", f"{POD}.affinity", {"nodeAffinity": {}}),
    "topologySpreadConstraints": Arrival(
        "[{maxSkew: 1}]", f"{POD}.topologySpreadConstraints", [{"maxSkew": 1}]
    ),
    "strategy": Arrival(
        "{rollingUpdate: {maxSurge: 2}}",
        "Deployment/reserver-scheduler spec.strategy.rollingUpdate",
        {"maxSurge": 2, "maxUnavailable": 0},
    ),
    "terminationGracePeriodSeconds": Arrival("90", f"{POD}.terminationGracePeriodSeconds", 90),
    "progressDeadlineSeconds": Arrival(
        "90", "Deployment/reserver-scheduler spec.progressDeadlineSeconds", 90
    ),
}
