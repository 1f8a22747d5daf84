#!/usr/bin/env bash
# Whether a release may have this version: Chart.yaml and the newest heading of the chart's CHANGELOG.md say the same.
# Usage: release-version.sh <version>
set -euo pipefail
chart=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../charts/backtalk" && pwd)
declared=$(sed -n 's/^version: //p' "$chart/Chart.yaml")
changes=$(awk '/^## / { print $2; exit }' "$chart/CHANGELOG.md")
[[ $1 == "$declared" && $1 == "$changes" ]] || {
  echo "The tag says $1, charts/backtalk/Chart.yaml $declared and the newest heading of its CHANGELOG.md $changes: all three must be one version." >&2
  exit 1
}
