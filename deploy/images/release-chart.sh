#!/usr/bin/env bash
# Packages the chart for a release: files/release-images.yaml names the released images, by registry and digest, and Chart.yaml the repository, where
# the variables of GitHub's Actions do. Refuses another version than the chart's own. Prints the package's path.
# Usage: release-chart.sh <version> <folder of image.txt files, each REGISTRY/backtalk/NAME@sha256:...> <folder of the package>
set -euo pipefail
version=$1 images=$2 out=$3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
"$root/deploy/images/release-version.sh" "$version"
chart=$(mktemp -d)/backtalk
trap 'rm -rf "$(dirname "$chart")"' EXIT
cp -r "$root/charts/backtalk" "$chart"
: > "$chart/files/release-images.yaml"
for name in services worker worker-cuda; do
  image=$(grep -rhE "/backtalk/$name@sha256:[0-9a-f]{64}\$" "$images")
  registry=${image%%/backtalk/*} digest=${image#*@}
  printf "backtalk/%s: { registry: %s, digest: '%s' }\n" "$name" "$registry" "$digest" >> "$chart/files/release-images.yaml"
done
if [[ -n ${GITHUB_REPOSITORY:-} ]]; then
  address="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"
  printf 'home: %s\nsources:\n  - %s\n' "$address" "$address" >> "$chart/Chart.yaml"
fi
helm package "$chart" --version "$version" --app-version "$version" --destination "$out" >&2
echo "$out/backtalk-$version.tgz"
