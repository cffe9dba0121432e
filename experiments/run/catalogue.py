"""All artefacts, in the order in which `all` makes them and the page shows them: findings first."""

from __future__ import annotations

from experiments.run.artefact import Artefact

_MODULES = {
    "distortion": "study.distortion",
    "distortion-study": "study.distortion_study",
    "spontaneous": "study.spontaneous",
    "poisoning": "study.poisoning",
    "forced": "serving.forced",
    "speedup": "serving.speedup",
    "banned": "serving.banned",
    "throughput": "serving.throughput",
    "masks": "serving.masks",
    "speed": "serving.speed",
    "peers": "serving.peers",
    "schemas": "schemas.comparison",
    "walks": "schemas.walks",
    "yaml_schemas": "schemas.yaml_schemas",
    "segments": "schemas.segments",
    "exactness": "laws.exactness",
    "tokenizers": "laws.tokenizers",
    "support": "laws.support",
    "stress": "laws.stress",
    "growth": "article.growth",
    "figures": "article.redrawn",
    "table1": "article.table1",
    "table2": "article.table2",
    "geometry": "article.geometry",
}
ARTEFACTS = {name: Artefact(name, f"experiments.{module}") for name, module in _MODULES.items()}
