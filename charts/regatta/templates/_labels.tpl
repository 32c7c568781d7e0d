{{- /* Which operator of a cluster this is: kubebuilder gives every operator the same selector. */}}
{{- define "regatta.identity" -}}
app.kubernetes.io/name: regatta-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "regatta.labels" -}}
{{ include "regatta.identity" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The former paddle-operator's selector, which cannot change on a Deployment that exists. */}}
{{- define "regatta.selector" -}}
control-plane: controller-manager
{{- end }}

{{- /* Takes [ours as YAML, a user's map]. A key of both is ours: two of it would be no YAML. */}}
{{- define "regatta.labels.beside" -}}
{{- merge (index . 0 | fromYaml) (index . 1 | default dict) | toYaml }}
{{- end }}

{{- /* What the operator may do where its jobs are: a Role's or a ClusterRole's rules. */}}
{{- define "regatta.rules" -}}
- apiGroups: [batch.paddlepaddle.org]
  resources: [paddlejobs]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [batch.paddlepaddle.org]
  resources: [paddlejobs/status]
  verbs: [patch, update]
- apiGroups: [batch.paddlepaddle.org]
  resources: [paddlejobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [create, get, list, watch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- /* Both, whatever `scheduling` says: a job may name Volcano itself, and `extraArgs` native. */}}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, get, list, watch, patch, delete]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [create, get, list, watch, delete]
{{- end }}

{{- /* A team's server, which is another program than the operator. */}}
{{- define "regatta.teamServer.identity" -}}
app.kubernetes.io/name: regatta-team-server
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "regatta.teamServer.labels" -}}
{{ include "regatta.teamServer.identity" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
