#!/usr/bin/env bash
# What a released image is made from, as lines `name=value`: the base that a recipe names, by digest; the commit's time;
# version and registry, from the variables of GitHub's Actions.
# Usage: release-inputs.sh <recipe> <argument of the base>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
base=$(sed -n "s/^ARG $2=//p" "$1.Dockerfile")
[[ $base =~ @sha256:[0-9a-f]{64}$ ]] || { echo "$1.Dockerfile names no digest of its base: $base" >&2; exit 1; }
./release-version.sh "${GITHUB_REF_NAME#v}"
echo "base=$base"
echo "epoch=$(git log -1 --format=%ct)"
echo "version=${GITHUB_REF_NAME#v}"
echo "registry=ghcr.io/${GITHUB_REPOSITORY_OWNER,,}"
