"""The Spark job of `spark_years`: spark-submit spark_years_job.py TABLE… prints its answers as JSON."""

import json
import sys
import time

from pyspark.sql import DataFrame, SparkSession, functions

begun = time.perf_counter()
spark = SparkSession.builder.getOrCreate()
started = time.perf_counter() - begun


def signals(rows: DataFrame) -> list[str]:
    return [name for name, kind in rows.dtypes if kind == "float"]


answers, seconds = {}, {}
for table in sys.argv[1:]:
    begun = time.perf_counter()
    rows = spark.table(f"ringlog.log.{table}")
    summary = [make(name) for name in signals(rows) for make in (functions.min, functions.max, functions.avg)]
    answers[table] = [float(value) for value in rows.agg(functions.count("*"), *summary).collect()[0]]
    seconds[table] = time.perf_counter() - begun
begun = time.perf_counter()
rows = spark.table(f"ringlog.log.{sys.argv[1]}")
rows.select([functions.corr(name, signals(rows)[0]) for name in signals(rows)]).first()
correlations = time.perf_counter() - begun
print(json.dumps({"start": started, "answers": answers, "seconds": seconds, "correlations": correlations}))
