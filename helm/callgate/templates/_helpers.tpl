{{- define "callgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name with the chart's, once. Short enough for the endings that are put behind it. */}}
{{- define "callgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "callgate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "callgate.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What never changes in the life of a release: a selector cannot be altered. */}}
{{- define "callgate.selector" -}}
app.kubernetes.io/name: {{ include "callgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "callgate.labels" -}}
{{ include "callgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "callgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The settings file. Secrets are not in it: they come as environment and files. */}}
{{- define "callgate.settings" -}}
{{- $own := dict
    "schemas" "/etc/callgate/schemas"
    "workers" (int .Values.workers)
    "shutdown_grace" (printf "%ds" (int .Values.shutdownGraceSeconds)) -}}
{{ toYaml (merge $own .Values.settings) }}
{{- end -}}

{{- define "callgate.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
periodSeconds: {{ int .times.periodSeconds }}
timeoutSeconds: {{ int .times.timeoutSeconds }}
failureThreshold: {{ int .times.failureThreshold }}
{{- end -}}
