"""Mirroring topics from one cluster to another, exactly once, with groups' offsets translated.

Pure: `spec` (what is asked for), `names`, `topic_plan` (which topics match, what to create or
change, what is refused), `position` (what is committed at the target), `beginnings` (where to begin
by it), `reach` (whether an end is reached), `offset_map` and `offset_map_records` (which source
offset has which target offset), `open_entries` (which record of the map a transaction writes
again), `written_records` (which target offsets its records got), `commit_times` (when it is
committed), `group_plan` (which offsets of groups to set), `switch_plan` (whether a group can be
moved over). Driving: `clusters` (both clusters, as librdkafka and `client` reach them), `topics`
(carries out the plan of topics), `identity` (whether topics are still those that were mirrored),
`source_reader`, `group_member` (which partitions this instance mirrors), `assignment` (until it
does), `target_writer` (records, positions and the offset map in one transaction), `share`,
`committed_positions`, `lost_positions` (those that the target has forgotten), `source_end` (waits
for other instances), `stable_map` (waits for open transactions), `map_reader`, `map_tidying`,
`group_offsets`, `group_switch`, `keeper` (topics and groups, in a thread), `mirror` (the loop).
`mirror_file` reads a mirror from TOML, `events` and `progress` are what it tells.

As Apache Kafka's MirrorMaker 2 (KIP-382, KIP-545, KIP-656), but a program of its own, with what it
knows kept at the target only; docs/mirror.md has the differences.
"""
