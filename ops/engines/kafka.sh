#!/usr/bin/env bash
# Puts Apache Kafka's jars on this machine, for Java 17 or newer: the bus of a cluster is tested on the real one.
# Maven gets them by name and version (kafka.pom.xml), and checks what it gets by its checksums.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

pom="$(cd "$(dirname "$0")" && pwd)/kafka.pom.xml"
version="$(sed -nE '/<artifactId>kafka_/,/<version>/s/.*<version>(.*)<\/version>.*/\1/p' "$pom")"
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
folder="${XDG_CACHE_HOME:-$HOME/.cache}/agon"
jars="$folder/kafka-$version"

need java openjdk-17-jre-headless
if [ ! -d "$jars" ]; then need mvn maven; fi
major="$(java -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')"
if [ "${major:-0}" -lt 17 ]; then
  echo "Kafka $version needs Java 17 or newer; the java on the path is ${major:-unknown}." >&2
  exit 1
fi
if [ ! -d "$jars" ]; then
  echo "getting the jars of Kafka $version"
  mkdir -p "$folder"
  # Whole or not at all: what an interrupted run leaves behind is not taken for Kafka.
  work="$(mktemp -d "$folder/kafka-XXXXXX")"
  trap 'rm -rf "$work"' EXIT
  cp "$pom" "$work/pom.xml"
  (cd "$work" && mvn -B -q -C "$plugin:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$work/jars")
  mv "$work/jars" "$jars"
fi
echo "kafka $version, java $major"
