{{/* What the operator may do where it looks after jobs: exactly what it does. */}}
{{- define "weir.rules" -}}
- apiGroups: [weir.dev]
  resources: [checkpointedjobs]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [weir.dev]
  resources: [checkpointedjobsnapshots]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [weir.dev]
  resources: [checkpointedjobs/status, checkpointedjobsnapshots/status]
  verbs: [update]
- apiGroups: [weir.dev] # to name a job as the owner of what is made for it
  resources: [checkpointedjobs/finalizers, checkpointedjobsnapshots/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, create]
- apiGroups: [""] # the canary: a change that must come back through the watches
  resources: [configmaps]
  resourceNames: [weir-operator-canary]
  verbs: [list, watch, patch]
- apiGroups: [""] # the keys of each job, and the ca.crt of its tlsSecret; never a list
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch]
- apiGroups: [networking.k8s.io] # of each job; patched when those who may reach drivers are others
  resources: [networkpolicies]
  verbs: [get, create, patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create]
{{- end }}

{{- /* What it may read of the cluster as a whole. */}}
{{- define "weir.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get]
{{- end }}

{{- /* Who it is, for a binding. */}}
{{- define "weir.subjects" -}}
- kind: ServiceAccount
  name: {{ include "weir.operator" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
