"""Serves S3 as moto simulates it, with the buckets that the arguments name, until standard input ends. Prints the address."""

import os
import sys

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
address = f"http://{host}:{port}"
credentials = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-east-1"}
s3 = boto3.client("s3", endpoint_url=address, **credentials)
for bucket in sys.argv[1:]:
    s3.create_bucket(Bucket=bucket)
print(address, flush=True)
for line in sys.stdin:
    # A bucket, whose keys are asked for.
    found = s3.get_paginator("list_objects_v2").paginate(Bucket=line.strip())
    print(" ".join(item["Key"] for page in found for item in page.get("Contents", [])), flush=True)
os._exit(0)
