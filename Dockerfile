# One image for everything that runs in a cluster: driver, executors and operator.
# What changes least comes first, so that after a change of code only the last layers are made anew.
# Where no registry can be reached, `./dev cluster load` gives it a base of Debian's packages.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

RUN if ! command -v java || ! command -v tini; then \
      mkdir -p /usr/share/man/man1 && apt-get update \
      && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
      && rm -rf /var/lib/apt/lists/*; \
    fi \
    && useradd --uid 10001 --home-dir /opt/job --create-home weir

COPY requirements/runtime.txt /opt/weir/requirements.txt
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes \
      --only-binary :all: --no-binary pyspark --requirement /opt/weir/requirements.txt \
    && ln -s /opt/venv/lib/python3*/site-packages/pyspark /opt/spark

ENV PATH=/opt/venv/bin:/opt/spark/bin:$PATH SPARK_HOME=/opt/spark \
    PYSPARK_PYTHON=/opt/venv/bin/python3 PYTHONPATH=/opt/weir/runtime:/opt/weir/operator

# Java's part of a start takes half the time when the classes lie ready.
COPY runtime/archive_classes.py /opt/weir/archive_classes.py
RUN python3 /opt/weir/archive_classes.py /opt/spark/classes.jsa /opt/spark/jars/classes.jar

COPY runtime/entrypoint /opt/weir/entrypoint
COPY operator/weir_operator /opt/weir/operator/weir_operator
COPY runtime/pyspark_weir.py /opt/weir/runtime/pyspark_weir.py
COPY runtime/weir /opt/weir/runtime/weir
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/weir

# A number, so that Kubernetes can see that it is not root.
USER 10001
WORKDIR /opt/job
ENTRYPOINT ["/opt/weir/entrypoint"]
