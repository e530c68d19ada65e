"""The daemon prefers what is installed to zipped copies of it, and leaves all else alone."""

from weir.daemon import without_copies


def installed(folder, *packages):
    for package in packages:
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    return str(folder)


def copies(folder):
    """As Spark names them, below the installed PySpark."""
    lib = folder / "pyspark" / "python" / "lib"
    return [str(lib / "pyspark.zip"), str(lib / "py4j-0.10.9.9-src.zip")]


def test_zipped_copies_of_what_is_installed_are_left_out(tmp_path):
    """R3: a slot starts sooner without them."""
    site = installed(tmp_path, "pyspark", "py4j")

    assert without_copies([*copies(tmp_path), "somewhere", site]) == ["somewhere", site]


def test_a_link_to_the_installed_one_is_known_as_such(tmp_path):
    """R3: as SPARK_HOME is in the image."""
    site = installed(tmp_path / "site", "pyspark")
    (tmp_path / "spark").symlink_to(tmp_path / "site" / "pyspark")

    assert without_copies([str(tmp_path / "spark/python/lib/pyspark.zip"), site]) == [site]


def test_a_copy_stays_where_its_content_is_not_installed(tmp_path):
    """R3: as on a machine with a Spark of its own."""
    site = installed(tmp_path, "pyspark")
    _, py4j = copies(tmp_path)

    assert without_copies([*copies(tmp_path), site]) == [py4j, site]
    assert without_copies(copies(tmp_path)) == copies(tmp_path)


def test_archives_of_others_stay(tmp_path):
    """R3: such as those that a user has sent along."""
    site = installed(tmp_path, "pyspark", "py4j")
    theirs = str(tmp_path / "theirs.zip")

    assert without_copies([theirs, site]) == [theirs, site]
