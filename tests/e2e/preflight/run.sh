#!/bin/bash
# usage: tests/e2e/preflight/run.sh FILE.pdf...
# Prints and exits as Preflight.java says. Java compiles the one file in memory.
set -euo pipefail

readonly jars=/usr/share/java
classpath=
for jar in preflight pdfbox2 xmpbox fontbox2 commons-logging javax.activation jaxb-api; do
    classpath+="$jars/$jar.jar:"
done
exec timeout 300 java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true \
    -cp "$classpath" "$(dirname "$0")/Preflight.java" "$@"
