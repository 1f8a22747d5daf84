# All TypeScript services and commands in one image: which one runs is the container's command.
# The base's digest is that of the index of all architectures; another base: --build-arg NODE_IMAGE=...
ARG NODE_IMAGE=node:24.11.1-bookworm-slim@sha256:48abc13a19400ca3985071e287bd405a1d99306770eb81d61202fb6b65cf0b57

FROM ${NODE_IMAGE} AS manifests
WORKDIR /app
ENV NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false NPM_CONFIG_AUDIT=false NPM_CONFIG_IGNORE_SCRIPTS=true
# What each folder needs, before what is in it: packages are installed again when a list of them changes, and only then.
COPY package.json package-lock.json tsconfig.base.json ./
COPY proto/package.json proto/
COPY services/lib/kit/package.json services/lib/kit/
COPY services/lib/dialects/package.json services/lib/dialects/
COPY services/gateway/package.json services/gateway/
COPY services/collector/package.json services/collector/
COPY services/judge/package.json services/judge/
COPY services/trainer/package.json services/trainer/
COPY services/publisher/package.json services/publisher/
COPY services/loader/package.json services/loader/
COPY services/cli/package.json services/cli/
COPY services/console/package.json services/console/
# Named by its package: without the file, its command is not linked.
COPY services/cli/bin services/cli/bin
COPY deploy/package.json deploy/
COPY deploy/dashboards/package.json deploy/dashboards/
COPY test/package.json test/

# What the services need to run. Not `npm prune` after the build: it takes as long, and installs what other workspaces need.
FROM manifests AS packages
RUN npm ci --omit=dev --workspace services/gateway --workspace services/collector --workspace services/judge --workspace services/trainer --workspace services/publisher --workspace services/loader --workspace services/cli --workspace services/console
# Types and maps are read by compilers and debuggers alone.
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
# What is copied keeps the modes of the checkout, which may be its owner's alone.
RUN chmod -R a+rX package.json
# Where volumes are mounted: an empty volume takes its owner from the folder that it covers.
RUN mkdir -p /volumes/spool /volumes/adapters && chmod 0775 /volumes/* && chown 10001:0 /volumes/*

FROM manifests AS build
RUN npm ci --workspace services/gateway --workspace services/collector --workspace services/judge --workspace services/trainer --workspace services/publisher --workspace services/loader --workspace services/cli --workspace services/console --include-workspace-root
COPY proto proto
COPY services services
RUN npm run generate
RUN npx tsc -b services/gateway services/collector services/judge services/trainer services/publisher services/loader services/cli services/console
# Sources, maps and tests stay behind.
RUN rm -rf services/worker && find proto services -type d \( -name src -o -name gen -o -name testing \) -not -path '*/node_modules/*' -prune -exec rm -rf {} + && find proto services -type f \( -name '*.map' -o -name '*.tsbuildinfo' -o -name '*.test.*' -o -name '*.d.ts' \) -delete
RUN chmod -R a+rX proto services

FROM ${NODE_IMAGE}
WORKDIR /app
ENV NODE_ENV=production
COPY --from=packages /volumes/ /
COPY --from=packages /app/package.json ./
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/proto proto
COPY --from=build /app/services services
# A number, so that a cluster can see that it is not root's.
USER 10001:10001
CMD ["node", "services/cli/bin/backtalk.mjs", "--help"]
