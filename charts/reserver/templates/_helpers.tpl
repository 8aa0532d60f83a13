{{/* The chart renders the files of scheduler-config (here: manifests), so that there is one place for each
right, port and probe; docs/adr/0048-one-source-for-kustomize-and-helm.md. */}}

{{/* A file, in the release's namespace, of its service account. (list $ "core/store.yaml") */}}
{{- define "reserver.file" -}}
{{- $root := index . 0 }}
{{- $name := printf "manifests/%s" (index . 1) }}
{{- $text := required (printf "the chart lacks %s" $name) ($root.Files.Get $name) | replace "reserver-system" $root.Release.Namespace }}
{{- regexReplaceAll "(?m)((?:kind: ServiceAccount\\n(?:metadata:\\n)? +|/service-account\\.)name: )reserver$" $text (printf "${1}%s" $root.Values.serviceAccount.name) }}
{{- end }}

{{/* What an object that the manifests call NAME is called here. (list $ "reserver-scheduler") */}}
{{- define "reserver.name" -}}
{{- $values := (index . 0).Values }}
{{- $name := index . 1 }}
{{- if and $values.fullnameOverride (ne $name "reserver-rebalance") }}
{{- $values.fullnameOverride }}
{{- else }}
{{- regexReplaceAll "^reserver" $name ($values.nameOverride | default $values.fullnameOverride | default "reserver") }}
{{- end }}
{{- end }}

{{/* An object that outlives the release, with what people wrote: a CRD, the store. (list $ "core/crd.yaml") */}}
{{- define "reserver.kept" -}}
{{- $kept := include "reserver.file" . | fromYaml }}
{{- $_ := set $kept.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") ($kept.metadata.annotations | default dict)) }}
{{- toYaml $kept }}
{{- end }}

{{/* The image of Reserver. */}}
{{- define "reserver.image" -}}
{{- with .Values.image }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}{{ end }}
{{- end }}

{{/* The arguments of settings, and those of what is enabled, as YAML. */}}
{{- define "reserver.args" -}}
{{- $args := list }}
{{- if .Values.autoscalers.enabled }}{{ $args = append $args "--keep-held-nodes" }}{{ end }}
{{- if .Values.capacityBuffers.enabled }}{{ $args = append $args "--capacity-buffers" }}{{ end }}
{{- if .Values.grpc.enabled }}{{ $args = concat $args (list "--tls-cert-file=/etc/reserver/tls/tls.crt" "--tls-private-key-file=/etc/reserver/tls/tls.key") }}{{ end }}
{{- if .Values.lending.enabled }}{{ $args = append $args "--lending" }}{{ end }}
{{- if .Values.maintenance.enabled }}{{ $args = append $args "--maintenance-windows" }}{{ end }}
{{- if and .Values.monitoring.enabled (eq .Values.mode "sidecar") }}{{ $args = append $args "--health-address=0.0.0.0:9441" }}{{ end }}
{{- if .Values.moves.enabled }}{{ $args = append $args "--pod-moves" }}{{ end }}
{{- if .Values.provisioning.enabled }}{{ $args = append $args "--provisioning-requests" }}{{ end }}
{{- if .Values.surge.enabled }}{{ $args = append $args "--surge-moves" }}{{ end }}
{{- if .Values.webhooks.enabled }}
{{- $args = append $args "--webhook-address=0.0.0.0:9444" }}
{{- if .Values.tls.certManager.enabled }}
{{- $args = concat $args (list "--webhook-cert-file=/etc/reserver/webhook/tls.crt" "--webhook-private-key-file=/etc/reserver/webhook/tls.key") }}
{{- end }}
{{- end }}
{{- toYaml (concat $args (include "reserver.flags" .Values.settings | fromYamlArray) .Values.extraArgs) }}
{{- end }}

{{/* Settings as flags, as YAML. */}}
{{- define "reserver.flags" -}}
{{- $args := list }}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
{{- $args = append $args (printf "--%s%s" (ternary "" "no-" $value) $name) }}
{{- else }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
{{- $args = append $args (printf "--%s=%v" $name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $args }}
{{- end }}

{{/* The policy of rebalancing, as a ConfigMap that is read anew before each round. */}}
{{- define "reserver.policy" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: reserver-rebalance-policy
  namespace: {{ .Release.Namespace }}
data:
  policy.yaml: |
{{- if .Values.rebalance.policy }}
{{ toYaml .Values.rebalance.policy | indent 4 }}
{{- else }}
{{ .Files.Get "manifests/rebalance/core/policy.yaml" | trim | indent 4 }}
{{- end }}
{{- end }}

{{/* What is common to the pods of Reserver: changes the spec that it is given. (list $ $podSpec $container) */}}
{{- define "reserver.pod" -}}
{{- $values := (index . 0).Values }}
{{- $pod := index . 1 }}
{{- $container := index . 2 }}
{{- $_ := set $container "image" (include "reserver.image" (index . 0)) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $_ := set $pod "priorityClassName" $values.priorityClassName }}
{{- with $values.imagePullSecrets }}
{{- $secrets := list }}
{{- range . }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}
{{- $_ := set $pod "imagePullSecrets" $secrets }}
{{- end }}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end }}
{{- with $values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end }}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" (concat ($pod.tolerations | default list) .) }}{{ end }}
{{- end }}

{{/* What is Reserver's own in its container, wherever that runs: changes it. (list $ $container) */}}
{{- define "reserver.container" -}}
{{- $root := index . 0 }}
{{- $container := index . 1 }}
{{- with $root.Values }}
{{- if .configuration }}
{{- $args := list "--config=/etc/reserver/configuration/reserver.yaml" }}
{{- range $container.args }}{{ if not (hasPrefix "--exempt-namespace=" .) }}{{ $args = append $args . }}{{ end }}{{ end }}
{{- $_ := set $container "args" $args }}
{{- $mount := dict "name" "configuration" "mountPath" "/etc/reserver/configuration" "readOnly" true }}
{{- $_ := set $container "volumeMounts" (append ($container.volumeMounts | default list) $mount) }}
{{- end }}
{{- with include "reserver.args" $root | fromYamlArray }}{{ $_ := set $container "args" (concat $container.args .) }}{{ end }}
{{- with .resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- with .extraEnv }}{{ $_ := set $container "env" (concat ($container.env | default list) .) }}{{ end }}
{{- with .extraVolumeMounts }}{{ $_ := set $container "volumeMounts" (concat ($container.volumeMounts | default list) .) }}{{ end }}
{{- range $name, $times := .probes }}
{{- $_ := mergeOverwrite (get $container (printf "%sProbe" $name)) $times }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ReserverConfiguration. Reserver's own namespace stays exempt: no hold keeps its pods from a node. */}}
{{- define "reserver.configuration" -}}
{{- $own := .Values.configuration }}
{{- $exempt := append ($own.exemptNamespaces | default list) .Release.Namespace | uniq }}
{{- $head := dict "apiVersion" "reserver.io/v1alpha1" "kind" "ReserverConfiguration" "exemptNamespaces" $exempt }}
{{- toYaml (merge $head $own) }}
{{- end }}

{{/* An object of a file that is called as the release wants it. (list $ "base/disruption-budget.yaml") */}}
{{- define "reserver.named" -}}
{{- $object := include "reserver.file" . | fromYaml }}
{{- $_ := set $object.metadata "name" (include "reserver.name" (list (index . 0) $object.metadata.name)) }}
{{- toYaml $object }}
{{- end }}

{{/* The configuration of the second kube-scheduler. */}}
{{- define "reserver.schedulerConfig" -}}
{{- $own := .Values.kubeScheduler }}
{{- $config := include "reserver.file" (list $ "base/kube-scheduler.yaml") | fromYaml }}
{{- $extenders := concat $config.extenders ($own.config.extenders | default list) }}
{{- $config = mergeOverwrite $config (deepCopy $own.config) }}
{{- range $config.profiles }}
{{- if or (not .schedulerName) (not $own.config.profiles) }}{{ $_ := set . "schedulerName" $own.schedulerName }}{{ end }}
{{- end }}
{{- toYaml (set $config "extenders" $extenders) }}
{{- end }}

{{/* Lets a NetworkPolicy's pods reach the API server, DNS and some ports. (list $ $policy $ports) */}}
{{- define "reserver.egress" -}}
{{- $own := (index . 0).Values.networkPolicy }}
{{- $ports := list }}
{{- range concat $own.apiServerPorts (index . 2) }}{{ $ports = append $ports (dict "port" (int .)) }}{{ end }}
{{- if $own.dns }}{{ $ports = concat $ports (list (dict "port" 53 "protocol" "UDP") (dict "port" 53 "protocol" "TCP")) }}{{ end }}
{{- $_ := set (first (index . 1).spec.egress) "ports" $ports }}
{{- end }}
