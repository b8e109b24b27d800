"""Names that the tests share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"

#: Roles of the patients of the examples.
WHO = {"id": "patient_id", "quasi": ["age", "zip"], "sensitive": "disease"}
#: Of the made-up census.
CENSUS = {"id": "person_id", "quasi": ["age", "gender", "education", "birthplace"], "sensitive": "occupation"}
