{{/* Names */}}

{{- define "killpoint.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains "killpoint" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-killpoint" (.Release.Name | trunc 30 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "killpoint.secretName" -}}
{{- .Values.secrets.existing | default (include "killpoint.fullname" .) -}}
{{- end -}}

{{/* Labels. A component's are of the form (list . "payments"). Pods bear none that changes from version to version:
     an upgrade restarts only what it changes. */}}

{{- define "killpoint.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: killpoint
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "killpoint.podLabels" -}}
{{- $root := first . -}}
app.kubernetes.io/name: killpoint
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "killpoint.metadata" -}}
{{- $root := first . -}}
name: {{ include "killpoint.fullname" $root }}-{{ last . }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "killpoint.labels" $root | nindent 2 }}
  app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{/* Pods that Pod Security "restricted" takes */}}

{{- define "killpoint.podSecurity" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "killpoint.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end -}}

{{/* What the pod of a component has beside its containers: (list . "payments" .Values.payments) */}}
{{- define "killpoint.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
enableServiceLinks: false
{{- with $root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Images: (list . "operator") */}}
{{- define "killpoint.image" -}}
{{- $values := (first .).Values.images -}}
{{- $tag := $values.tag | default (first .).Chart.AppVersion -}}
{{- with $values.registry }}{{ trimSuffix "/" . }}/{{ end }}killpoint-{{ last . }}:{{ $tag }}
{{- end -}}

{{- define "killpoint.workerImages" -}}
{{- $root := . -}}
{{- $images := dict -}}
{{- range $name, $image := .Values.images.workers -}}
{{- $_ := set $images $name ($image | default (include "killpoint.image" (list $root $name))) -}}
{{- end -}}
{{- toJson $images -}}
{{- end -}}

{{/* Where things are */}}

{{- define "killpoint.postgresPlace" -}}
{{- if .Values.postgres.bundled -}}
{{ include "killpoint.fullname" . }}-postgres.{{ .Release.Namespace }}.svc:5432
{{- else -}}
{{- .Values.postgres.existing.host | required "postgres.bundled is false: set postgres.existing.host to host:port of the server" -}}
{{- end -}}
{{- end -}}

{{- define "killpoint.postgresPort" -}}
{{- splitList ":" (include "killpoint.postgresPlace" .) | last -}}
{{- end -}}

{{- define "killpoint.paymentsUrl" -}}
http://{{ include "killpoint.fullname" . }}-payments.{{ .Release.Namespace }}.svc:8080
{{- end -}}

{{- define "killpoint.paymentsAdminUrl" -}}
http://{{ include "killpoint.fullname" . }}-payments.{{ .Release.Namespace }}.svc:8081
{{- end -}}

{{- define "killpoint.controlUrl" -}}
http://{{ include "killpoint.fullname" . }}-control.{{ .Release.Namespace }}.svc:8080
{{- end -}}

{{/* Variables */}}

{{/* (list . "NAME" "key") */}}
{{- define "killpoint.secretVariable" -}}
- name: {{ index . 1 }}
  valueFrom: {secretKeyRef: {name: {{ include "killpoint.secretName" (first .) }}, key: {{ index . 2 }}}}
{{- end -}}

{{/* The login that may create databases and roles. */}}
{{- define "killpoint.adminDatabase" -}}
{{- if .Values.postgres.bundled -}}
{{ include "killpoint.secretVariable" (list . "KILLPOINT_POSTGRES_PASSWORD" "postgres-password") }}
- name: KILLPOINT_DATABASE_URL
  value: postgresql://killpoint:$(KILLPOINT_POSTGRES_PASSWORD)@{{ include "killpoint.postgresPlace" . }}/postgres
{{- else -}}
- name: KILLPOINT_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.existing.secretName | required "postgres.bundled is false: set postgres.existing.secretName" }}
      key: {{ .Values.postgres.existing.secretKey }}
{{- end -}}
{{- end -}}

{{/* A service's own database: (list . "payments" "NAME_OF_THE_VARIABLE") */}}
{{- define "killpoint.serviceDatabase" -}}
{{- $root := index . 0 -}}
{{- $service := index . 1 -}}
{{- $parameters := ternary "" $root.Values.postgres.existing.parameters $root.Values.postgres.bundled -}}
{{ include "killpoint.secretVariable" (list $root "KILLPOINT_SERVICE_PASSWORD" (printf "%s-password" $service)) }}
- name: {{ index . 2 }}
  value: postgresql://killpoint_{{ $service }}:$(KILLPOINT_SERVICE_PASSWORD)@{{ include "killpoint.postgresPlace" $root }}/killpoint_{{ $service }}{{ with $parameters }}?{{ . }}{{ end }}
{{- end -}}

{{/* Waits for the server, then makes a service's role and database: (list . "payments") */}}
{{- define "killpoint.ensureDatabase" -}}
{{- $root := first . -}}
- name: database
  image: {{ include "killpoint.image" (list $root "operator") }}
  imagePullPolicy: {{ $root.Values.images.pullPolicy }}
  command: [python, -m, killpoint.databases, killpoint_{{ last . }}]
  env:
    {{- include "killpoint.adminDatabase" $root | nindent 4 }}
    {{- include "killpoint.secretVariable" (list $root "KILLPOINT_SERVICE_PASSWORD" (printf "%s-password" (last .))) | nindent 4 }}
  resources:
    requests: {cpu: 20m, memory: 64Mi}
    limits: {memory: 256Mi}
  securityContext: {{- include "killpoint.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* Where workers are: a peer of a NetworkPolicy */}}
{{- define "killpoint.workerPeer" -}}
podSelector:
  matchExpressions:
    - {key: killpoint.dev/attempt, operator: Exists}
{{- if .Values.clusterWide }}
namespaceSelector: {}
{{- else if .Values.namespaces }}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values: {{- include "killpoint.namespaces" . | fromJsonArray | toYaml | nindent 8 }}
{{- end }}
{{- end -}}

{{/* The namespaces with a Role, the release's own first: JSON */}}
{{- define "killpoint.namespaces" -}}
{{- prepend .Values.namespaces .Release.Namespace | uniq | toJson -}}
{{- end -}}

{{/* What the operator looks after, as it is told: a comma list, or * */}}
{{- define "killpoint.watched" -}}
{{- if .Values.clusterWide -}}*{{- else -}}{{- include "killpoint.namespaces" . | fromJsonArray | join "," -}}{{- end -}}
{{- end -}}
