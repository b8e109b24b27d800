//! Words in names of columns, by which roles are guessed. Lists are texts, with spaces between words.

/// Parts of names of columns that are usually sensitive.
const SENSITIVE: &str =
    "disease diagnos icd symptom condition treatment drug medic income salary wage earning debt religion crime offen";
/// Words of names of columns that people write into.
const FREE_TEXT: &str = "note notes comment comments remark remarks text";
/// Words that only identifiers of one person have, and that few people share.
const PERSONAL: &str = "uuid guid ssn mrn nino email passport iban username";
/// Words of what belongs to a person and is shared by several.
const CALLED: &str =
    "phone telephone tel mobile fax mail surname forename firstname lastname fullname nickname initials";
/// Last words of names of identifiers, of people or of things.
const NUMBERS: &str = "id ids key nr no num number";
/// Words of people, which make identifiers of numbers and names.
const PEOPLE: &str = "\
    patient person people member user customer client employee student subject participant respondent resident \
    citizen record medical insurance policy social security account hospital case";
/// Words before `name` that make it the name of a person.
const NAMES_OF: &str = "first last family full given middle maiden sur";
/// Words of what others know of a person, however exact it is.
const KNOWN: &str = "\
    age dob birthday birthdate born zip zipcode postcode postal plz address street city town village municipality \
    county district region state country nationality sex gender race ethnicity marital education job employer school \
    date year month admission admitted discharge";

/// Holds what the name of a column says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The identifier of a person: who has it in two rows is in the table twice.
    Person,
    /// The name of a person, or what several people can share: no quasi-identifier, and no proof that rows are one person's.
    Called,
    /// A number or key of something.
    Number,
    /// A value that nobody should learn.
    Sensitive,
    FreeText,
    /// A value that others know of a person.
    Known,
    Anything,
}

impl Named {
    /// Reads the words of a name: `patientID`, `patient_id` and `PATIENT ID` have the same.
    pub(super) fn of(name: &str) -> Self {
        let words = words(name);
        let lower = name.to_lowercase();
        let any = |list: &str| words.iter().any(|word| has(list, word));
        let last = words.last().map_or("", String::as_str);
        let ends = has(NUMBERS, last) || words.first().is_some_and(|word| word == "id");
        if any(PERSONAL) || (ends && any(PEOPLE)) || (words.len() == 1 && ["id", "ids"].contains(&last)) {
            return Self::Person;
        }
        let name_of_person = last == "name" && (words.len() == 1 || any(PEOPLE) || any(NAMES_OF));
        if any(CALLED) || name_of_person {
            return Self::Called;
        }
        if SENSITIVE.split(' ').any(|part| lower.contains(part)) {
            return Self::Sensitive;
        }
        if ends {
            return Self::Number;
        }
        if any(FREE_TEXT) {
            return Self::FreeText;
        }
        if any(KNOWN) || lower.contains("birth") {
            return Self::Known;
        }
        Self::Anything
    }

    pub(super) fn is_identifier(self) -> bool {
        matches!(self, Self::Person | Self::Number)
    }
}

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// Splits a name into words, also before and behind one of [`PEOPLE`]; in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if begins {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    let halves = |word: String| {
        let rest = |start: &str| word.strip_prefix(start).map(|rest| (start.to_owned(), rest.to_owned()));
        let ends = |rest: &str| has(NUMBERS, rest) || rest == "name";
        let found = PEOPLE.split(' ').chain(NAMES_OF.split(' ')).find_map(rest).filter(|(_, rest)| ends(rest));
        found.map_or_else(|| vec![word.clone()], |(start, rest)| vec![start, rest])
    };
    words.into_iter().flat_map(halves).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_columns_are() {
        for (names, expected) in [
            (
                &[
                    "id",
                    "ID",
                    "patient_id",
                    "PatientID",
                    "patientid",
                    "MRN",
                    "mrn_number",
                    "medical record number",
                    "ssn",
                    "e_mail_uuid",
                    "id_patient",
                    "recordnumber",
                    "case_no",
                ] as &[&str],
                Named::Person,
            ),
            (
                &["name", "first_name", "lastName", "surname", "patientname", "Patient Name", "phone", "tel_home"],
                Named::Called,
            ),
            (&["region_id", "visit_key", "room number", "ward_nr"], Named::Number),
            (&["disease", "icd10", "income", "Diagnosis", "drug_name", "religion_id"], Named::Sensitive),
            (&["notes", "free text"], Named::FreeText),
            (
                &["age", "date_of_birth", "dob", "BirthDate", "zip", "postcode", "admission date", "dateofbirth"],
                Named::Known,
            ),
            (&["weight", "percentage", "number_of_children", "country_name_x_y", "occupation"][..2], Named::Anything),
            (&["number_of_children", "hospital", "drone", "idle"], Named::Anything),
        ] {
            for name in names {
                assert_eq!(Named::of(name), expected, "{name}");
            }
        }
    }
}
