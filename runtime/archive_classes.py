"""Archives the classes that Spark's JVMs load, so that the next ones start in half the time.

    python3 archive_classes.py ARCHIVE [CLASS_PATH]

A JVM whose class path begins with that of the archive loads the classes from it; any other JVM
ignores it. Spark lists its jars in the order of a directory, which differs between disks. If the
archive is for another disk, CLASS_PATH becomes a jar that names the jars beside it in a fixed
order, to be the first entry of a class path.

The archive holds the classes of a driver up to its first failed call of Kubernetes, of an executor,
of a session, and of a job with a Python worker.
"""

import os
import sys
from pathlib import Path
from subprocess import Popen
from zipfile import ZipFile

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

HERE = "127.0.0.1"
UNREACHABLE = f"k8s://https://{HERE}:1"
EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
LONGEST_LINE = 70
"""Of a jar's manifest; a line that begins with a space goes on with the one before."""


def main(archive: str, class_path: str = "") -> None:
    if class_path:
        _name_jars_beside(Path(class_path))
    impatient = "-Dkubernetes.request.retry.backoffLimit=0"
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit='{archive}' {impatient}"
    os.environ["SPARK_LOCAL_IP"] = HERE  # where images are made, a machine may not know its name
    _fail_to_connect(class_path)
    java = _run_locally()
    assert java.stdin is not None, "PySpark holds the JVM by it"
    java.stdin.close()  # that ends it, and it writes the archive then
    sys.exit(java.wait())


def _name_jars_beside(jar: Path) -> None:
    others = sorted(other.name for other in jar.parent.glob("*.jar") if other != jar)
    line = f"Class-Path: {' '.join(others)}"
    parts = (line[at : at + LONGEST_LINE] for at in range(0, len(line), LONGEST_LINE))
    with ZipFile(jar, "w") as written:
        manifest = "Manifest-Version: 1.0\n" + "\n ".join(parts) + "\n"
        written.writestr("META-INF/MANIFEST.MF", manifest)


def _builder(master: str) -> SparkSession.Builder:
    builder = SparkSession.builder.master(master).config("spark.driver.host", HERE)
    return builder.config("spark.ui.enabled", "false")


def _fail_to_connect(class_path: str) -> None:
    builder = _builder(UNREACHABLE).config("spark.driver.extraClassPath", class_path)
    try:
        builder.config("spark.kubernetes.container.image", "none").getOrCreate()
    except Py4JJavaError:
        return
    raise SystemExit(f"a server answers at {UNREACHABLE}")


def _run_locally() -> Popen[bytes]:
    spark = _builder("local[2]").getOrCreate()
    context = spark.sparkContext
    context._jvm.java.lang.Class.forName(EXECUTOR)  # type: ignore[union-attr]  # noqa: SLF001
    context.parallelize(range(2), 2).map(abs).count()
    java: Popen[bytes] = context._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001
    spark.stop()
    return java


if __name__ == "__main__":
    main(*sys.argv[1:])
