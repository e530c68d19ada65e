{{/* Names of the objects of this release, and the labels that select its pods. */}}

{{- define "weir.operator" -}}
{{ printf "%s-operator" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Who reaches the API of drivers beside their own pods: the operator, and those of the values. */}}
{{- define "weir.driverPeers" -}}
{{- $home := dict "kubernetes.io/metadata.name" .Release.Namespace -}}
{{- $operator := dict
  "namespaceSelector" (dict "matchLabels" $home)
  "podSelector" (dict "matchLabels" (include "weir.selector" . | fromYaml)) -}}
{{ concat (list $operator) .Values.networkPolicy.from | toJson }}
{{- end }}

{{/* The namespaces in which drivers get their account, as JSON. */}}
{{- define "weir.jobNamespaces" -}}
{{- $watched := .Values.watchNamespaces -}}
{{- $chosen := .Values.jobNamespaces | default $watched | default (list "default") -}}
{{- range $chosen -}}
{{- if and $watched (not (has . $watched)) -}}
{{- fail (printf "jobNamespaces: the operator does not watch %s; add it to watchNamespaces, or remove it" .) -}}
{{- end -}}
{{- end -}}
{{ toJson $chosen }}
{{- end }}
