# All TypeScript services and commands in one image: which one runs is the container's command.
# Pin the base by digest for a build that can be repeated: --build-arg NODE_IMAGE=node@sha256:...
ARG NODE_IMAGE=node:24.11.1-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
ENV NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false NPM_CONFIG_AUDIT=false NPM_CONFIG_IGNORE_SCRIPTS=true
COPY package.json package-lock.json tsconfig.base.json ./
COPY proto proto
COPY services services
COPY deploy/package.json deploy/package.json
COPY deploy/dashboards/package.json deploy/dashboards/package.json
COPY test/package.json test/package.json
RUN npm ci --workspace services/gateway --workspace services/collector --workspace services/judge --workspace services/trainer --workspace services/publisher --workspace services/loader --workspace services/cli --include-workspace-root
RUN npm run generate
RUN npx tsc -b services/gateway services/collector services/judge services/trainer services/publisher services/loader services/cli
# The same lock file again, without what only building needs.
RUN npm ci --omit=dev --workspace services/gateway --workspace services/collector --workspace services/judge --workspace services/trainer --workspace services/publisher --workspace services/loader --workspace services/cli
# Sources, maps and tests stay behind; the links of workspaces that are not here go too.
RUN rm -rf services/worker && find proto services -type d \( -name src -o -name gen -o -name testing \) -not -path '*/node_modules/*' -prune -exec rm -rf {} + && find proto services -type f \( -name '*.map' -o -name '*.tsbuildinfo' -o -name '*.test.*' -o -name '*.d.ts' \) -delete && find node_modules -xtype l -delete

FROM ${NODE_IMAGE}
WORKDIR /app
ENV NODE_ENV=production
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/proto proto
COPY --from=build /app/services services
# A number, so that a cluster can see that it is not root's.
USER 10001:10001
CMD ["node", "services/cli/bin/backtalk.mjs", "--help"]
