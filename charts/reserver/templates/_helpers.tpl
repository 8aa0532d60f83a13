{{/* The chart renders the files of scheduler-config (here: manifests), so that there is one place for each
right, port and probe; docs/adr/0048-one-source-for-kustomize-and-helm.md. */}}

{{/* A file, in the release's namespace. (list $ "core/store.yaml") */}}
{{- define "reserver.file" -}}
{{- $root := index . 0 }}
{{- $name := printf "manifests/%s" (index . 1) }}
{{- required (printf "the chart lacks %s" $name) ($root.Files.Get $name) | replace "reserver-system" $root.Release.Namespace }}
{{- end }}

{{/* A CRD, which outlives the release. */}}
{{- define "reserver.crd" -}}
{{- $crd := include "reserver.file" . | fromYaml }}
{{- $_ := set $crd.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") ($crd.metadata.annotations | default dict)) }}
{{- toYaml $crd }}
{{- end }}

{{/* The image of Reserver. */}}
{{- define "reserver.image" -}}
{{- with .Values.image }}{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}{{ end }}
{{- end }}

{{/* The arguments of settings, and those of what is enabled, as YAML. */}}
{{- define "reserver.args" -}}
{{- $args := list }}
{{- if .Values.autoscalers.enabled }}{{ $args = append $args "--keep-held-nodes" }}{{ end }}
{{- if .Values.capacityBuffers.enabled }}{{ $args = append $args "--capacity-buffers" }}{{ end }}
{{- if and .Values.monitoring.enabled (eq .Values.mode "sidecar") }}{{ $args = append $args "--health-address=0.0.0.0:9441" }}{{ end }}
{{- if .Values.moves.enabled }}{{ $args = append $args "--pod-moves" }}{{ end }}
{{- if .Values.provisioning.enabled }}{{ $args = append $args "--provisioning-requests" }}{{ end }}
{{- if .Values.webhooks.enabled }}{{ $args = append $args "--webhook-address=0.0.0.0:9444" }}{{ end }}
{{- toYaml (concat $args (include "reserver.flags" .Values.settings | fromYamlArray)) }}
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

{{/* Lets a NetworkPolicy's pods reach the API server. (list $ $policy) */}}
{{- define "reserver.egress" -}}
{{- $ports := list }}
{{- range (index . 0).Values.networkPolicy.apiServerPorts }}{{ $ports = append $ports (dict "port" (int .)) }}{{ end }}
{{- $_ := set (first (index . 1).spec.egress) "ports" $ports }}
{{- end }}
