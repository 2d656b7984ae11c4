"""What goes wrong with a query, as Spark, storage and brokers say it, and what follows."""
