"""Pages that show a Kafka cluster: `ottla console`.

A process of its own and a client of the cluster, so it shows any Kafka. A request takes one path:

1. `guard` refuses what does not come from these pages (Host, Origin), finds the session and puts
   the headers on each response.
2. `endpoint` reads the form of a POST, checks its token, and runs the page's function in a thread
   of `workers`: everything that asks the cluster blocks.
3. A function in `pages` gets a `Visit`, asks the cluster through its client, and returns the page
   that `templates` make of it. Pages work without JavaScript; `static` adds what is live.
4. What fails is a page too (`failure_page`): what happened, what to do, and if the cluster may come
   back, the page asks again by itself.

What is asked of a cluster is in `ottla.client.admin`; records are read by `ottla.messaging`.
"""
