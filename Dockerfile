# ticketpress in two stages: the first builds with the Makefile, the second holds the program, its
# data and the packages that it runs with, and nothing to build with. It writes to its volume only:
#   docker build -t ticketpress .
#   docker run --read-only -p 127.0.0.1:8080:8080 -v ticketpress:/var/lib/ticketpress ticketpress \
#       serve --listen 0.0.0.0:8080 --insecure-no-auth
# (with --client-keys FILE instead of --insecure-no-auth wherever others can reach the port)
# The image takes about 205 MB: debian:12-slim 75, packages 130 (fonts 58, ICU 37), the program 2.
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
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ticketpress \
    && install -d -o 10001 -g 10001 -m 700 /var/lib/ticketpress
COPY --from=build /staged/usr/local/ /usr/local/
USER 10001:10001
WORKDIR /var/lib/ticketpress
ENV STATE_DIRECTORY=/var/lib/ticketpress
VOLUME /var/lib/ticketpress
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=2s \
    CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["/usr/local/bin/ticketpress"]
CMD ["serve"]
