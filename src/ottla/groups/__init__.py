"""Consumer groups, pure: who is a member, who owns what, and the offsets that groups commit."""
