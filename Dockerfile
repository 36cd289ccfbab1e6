# ticketpress in two stages: the first builds with the Makefile, the second holds the program, its
# data and the packages that it runs with, and nothing to build with. It needs no writable root:
#   docker build -t ticketpress .
#   docker run --rm --read-only -i -v "$PWD/keys.json:/keys.json:ro" ticketpress \
#       render --signing-keys /keys.json - -o - <batch.json >tickets.pdf
FROM debian:12-slim AS build
WORKDIR /src
COPY deploy/debian-packages.txt deploy/install-packages.sh deploy/
RUN deploy/install-packages.sh build && rm -rf /var/lib/apt/lists/*
COPY Makefile LICENSE ./
COPY domain/ domain/
COPY workers/ workers/
COPY service/ service/
RUN make program && make install DESTDIR=/staged PREFIX=/usr/local

FROM debian:12-slim
COPY deploy/debian-packages.txt deploy/install-packages.sh /tmp/deploy/
RUN /tmp/deploy/install-packages.sh run && rm -rf /tmp/deploy /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ticketpress
COPY --from=build /staged/usr/local/ /usr/local/
USER 10001:10001
WORKDIR /var/empty
ENTRYPOINT ["/usr/local/bin/ticketpress"]
CMD ["version"]
