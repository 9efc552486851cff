"""A Spark job over all signals of a table: the correlation of each with one, and a quantile of each day.

spark-submit job.py TABLE SIGNAL prints the answer as a line of JSON.
"""

import json
import sys

from pyspark.sql import SparkSession, functions

table, reference = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.table(f"ringlog.log.{table}")
signals = [name for name, kind in rows.dtypes if kind in ("float", "double")]
correlations = rows.select([functions.corr(name, reference).alias(name) for name in signals]).first()
quantiles = (
    rows.groupBy(functions.date_format("time", "yyyy-MM-dd").alias("day"))
    .agg(
        functions.count("*").alias("rows"),
        *(functions.percentile(name, 0.95).alias(name) for name in signals),
    )
    .orderBy("day")
)
answer = {
    "workers": spark.sparkContext.defaultParallelism,
    "files": rows.select("_file").distinct().count(),
    "correlations": correlations.asDict(),
    "days": {row["day"]: [row["rows"], *(row[name] for name in signals)] for row in quantiles.collect()},
}
print(json.dumps(answer))
