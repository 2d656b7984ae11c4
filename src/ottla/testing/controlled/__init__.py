"""The process of a broker that a test controls: `ottla serve`'s node on a clock and with request
handlers of the kit, and a socket on which the test asks for more time, faults or retention.
"""
