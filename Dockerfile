# A small image of callgate, without root. The Kafka broker of the demo is not in it (no Java). Its steps are run by hand, without
# a container engine, where there is none: keep them that simple.
#   docker build -t callgate .
#   docker run --rm -p 9464:9464 -v "$PWD/callgate.toml:/etc/callgate.toml:ro" -v "$PWD/schemas:/schemas:ro" \
#       callgate run --config /etc/callgate.toml
# In the container `localhost` is the container itself: the settings must name the broker as it is seen from there.

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements requirements
# The image gets one environment, what builds the package another that stays behind.
RUN python -m venv /opt/callgate && /opt/callgate/bin/python -m pip install -r requirements/run.txt \
    && python -m pip install -r requirements/build.txt
COPY . .
RUN python -m pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
    && /opt/callgate/bin/python -m pip install --no-deps /wheels/*.whl \
    && /opt/callgate/bin/python -m pip uninstall --yes --quiet pip

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home callgate
COPY --from=build /opt/callgate /opt/callgate
COPY schemas /schemas
# Metrics and health are for the outside of the container.
ENV PATH=/opt/callgate/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CALLGATE_HTTP_HOST=0.0.0.0 CALLGATE_HTTP_PORT=9464
# By number: Kubernetes' runAsNonRoot cannot check a name.
USER 10001:10001
WORKDIR /
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['CALLGATE_HTTP_PORT'] + '/healthz', timeout=2)"]
ENTRYPOINT ["callgate"]
CMD ["run"]
