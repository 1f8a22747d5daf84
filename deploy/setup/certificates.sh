#!/bin/sh
# Makes an authority and one certificate for all services, the broker and Valkey: certificates.sh FOLDER [HOST...]
# Services look for the name "backtalk"; the broker and Valkey are looked for under their hosts.
set -eu
folder=$1 && shift && mkdir -p "$folder" && cd "$folder" && umask 077
names=$(printf 'DNS:backtalk,DNS:localhost,IP:127.0.0.1'; [ $# -eq 0 ] || printf ',DNS:%s' "$@")
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=backtalk-authority -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=backtalk -addext "subjectAltName=$names" -keyout tls.key -out tls.csr
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -copy_extensions copy -out tls.crt
