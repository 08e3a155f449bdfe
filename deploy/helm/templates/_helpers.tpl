{{- define "dragoman.name" -}}
{{ .Release.Name }}-dragoman
{{- end }}
{{- define "dragoman.selector" -}}
app.kubernetes.io/name: dragoman
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "dragoman.labels" -}}
{{ include "dragoman.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: dragoman-{{ .Chart.Version }}
{{- end }}
