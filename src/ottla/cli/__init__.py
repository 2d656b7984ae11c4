"""The command line: a folder for each group of commands, a file for each command.

To add `ottla topic rename`, write `topic/rename.py` (for a word with a dash: `_`; for a keyword of
Python: `import_.py`), its test `tests/cli/topic/test_rename.py`, a row of mistakes in
`tests/system/test_mistakes.py`, and a line in docs/cli.md. Help, completion and the reference page
are made from the file, which `ottla topic rename` alone imports:

    @command()
    @topic_argument()
    @click.option("--dry-run", is_flag=True, help="A whole sentence.")
    @AS_JSON
    @cluster_options
    def rename(cluster: Cluster, topic: str, dry_run: bool, as_json: bool) -> None:
        \"\"\"One sentence for the list of commands.\"\"\"
        found = cluster.client.existing_topics([topic])
        emit([Renamed(topic, ...)], as_json=as_json, none="Nothing to rename.")

- `command` makes a command of a function, `context` finds the cluster that is meant and connects to
  it with the first `cluster.client`, so check what was typed before.
- `options` has the options of several commands, `value_types` the types of values.
- `rows` prints what was found: a class with `@row` says once which columns a table has and what
  `--json` prints. `screen` has `say`, `note` (on standard error) and `ask`.
- What fails is raised as `failures.Failed`, what was typed wrong as `UsageFailed`, each with a
  hint of what to type instead. Another exit code than 0: `raise click.exceptions.Exit(code)`.
- A module in the folder of a group without a command is shared by the group's commands. A new
  group is a package whose docstring is its help; `app` names the groups.

A test runs `carry_out(words, cluster)` of `app`; `cluster` is any object with a `client`.
"""
