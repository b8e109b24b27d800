//! SCRAM-SHA-256 from the server's side, against what PostgreSQL keeps of passwords: with it one can check who knows the password, and
//! not log in as they do.
//!
//! `pgwire` has an exchange of its own, which needs the salted password, and that is as good as the password.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use ring::digest::{self, SHA256, SHA256_OUTPUT_LEN as HASH};
use ring::hmac::{self, HMAC_SHA256};
use subtle::ConstantTimeEq;

/// Verifier that is kept of a password: `SCRAM-SHA-256$4096:salt$stored key:server key`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Verifier {
    iterations: u32,
    /// Salt as it is sent, in base64.
    salt: String,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Verifier {
    /// Fewer make passwords cheap to guess for whoever has the file.
    const LEAST_ITERATIONS: u32 = 4096;

    /// Reads a verifier; `None` if the text is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let (iterations, salt) = first.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text| STANDARD.decode(text).ok().filter(|key| key.len() == HASH);
        let iterations = iterations.parse().ok().filter(|&number| number >= Self::LEAST_ITERATIONS)?;
        STANDARD.decode(salt).ok().filter(|salt| salt.len() >= 8)?;
        Some(Self { iterations, salt: salt.to_owned(), stored_key: key(stored)?, server_key: key(server)? })
    }

    /// Makes a verifier that no password fits, for names that nobody has. It is the same each time and has the form of
    /// users' ones, so that nobody can tell them apart.
    pub(super) fn of_nobody(name: &str, secret: &[u8], (iterations, salt): (u32, usize)) -> Self {
        let letters: Vec<u8> = (0_u32..)
            .flat_map(|block| signed(secret, format!("salt {block} of {name}").as_bytes()))
            .take(salt)
            .collect();
        let key = signed(secret, format!("no key of {name}").as_bytes());
        Self { iterations, salt: STANDARD.encode(letters), stored_key: key.clone(), server_key: key }
    }

    /// Returns iterations, and bytes of the salt: the part that is seen before a password is.
    pub(super) fn form(&self) -> (u32, usize) {
        (self.iterations, STANDARD.decode(&self.salt).map_or(0, |salt| salt.len()))
    }

    /// Returns a secret that only those know who have the verifiers.
    pub(super) fn secret_of(text: &str) -> Vec<u8> {
        signed(digest::digest(&SHA256, text.as_bytes()).as_ref(), b"names that nobody has")
    }
}

/// Reason why an exchange ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The password is another one.
    Wrong,
    /// A message is not as it should be.
    Malformed,
}

/// After the server's first message.
#[derive(Debug)]
pub(super) struct Exchange {
    verifier: Verifier,
    /// Client's statement that it binds no channel, in base64.
    binding: String,
    nonce: String,
    /// The two first messages, as they are signed.
    messages: String,
}

impl Exchange {
    /// Returns the exchange, and the server's answer to the client's first message. `own` is drawn anew for every exchange.
    /// Fails when the message is not one, or wants what was not offered.
    pub(super) fn begin(first: &[u8], verifier: Verifier, own: &str) -> Result<(Self, String), Refused> {
        let first = std::str::from_utf8(first).map_err(|_| Refused::Malformed)?;
        // No binding of channels was offered, and nobody acts for somebody else.
        let header = ["n,,", "y,,"].into_iter().find(|header| first.starts_with(header)).ok_or(Refused::Malformed)?;
        let bare = &first[header.len()..];
        // The name is that of the startup message, as in PostgreSQL.
        let (_, nonce) = bare.strip_prefix("n=").and_then(|rest| rest.split_once(",r=")).ok_or(Refused::Malformed)?;
        let nonce = nonce.split(',').next().unwrap_or_default();
        if nonce.is_empty() {
            return Err(Refused::Malformed);
        }
        let nonce = format!("{nonce}{own}");
        let answer = format!("r={nonce},s={},i={}", verifier.salt, verifier.iterations);
        let messages = format!("{bare},{answer}");
        Ok((Self { verifier, binding: STANDARD.encode(header.as_bytes()), nonce, messages }, answer))
    }

    /// Returns the server's answer to a client that knows the password.
    /// Fails when it does not, or the message is not one.
    pub(super) fn finish(&self, last: &[u8]) -> Result<String, Refused> {
        let last = std::str::from_utf8(last).map_err(|_| Refused::Malformed)?;
        let (before, proof) = last.rsplit_once(",p=").ok_or(Refused::Malformed)?;
        let proof = STANDARD.decode(proof).ok().filter(|proof| proof.len() == HASH).ok_or(Refused::Malformed)?;
        let mut parts = before.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        if binding != Some(&self.binding) || nonce != Some(&self.nonce) {
            return Err(Refused::Malformed);
        }
        let messages = format!("{},{before}", self.messages);
        let signature = signed(&self.verifier.stored_key, messages.as_bytes());
        let key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        if !bool::from(digest::digest(&SHA256, &key).as_ref().ct_eq(&self.verifier.stored_key)) {
            return Err(Refused::Wrong);
        }
        Ok(format!("v={}", STANDARD.encode(signed(&self.verifier.server_key, messages.as_bytes()))))
    }
}

/// Returns the HMAC-SHA-256 of `data`.
fn signed(key: &[u8], data: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), data).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
    use postgres_protocol::password::scram_sha_256;

    use super::*;

    /// Logs in with a client that is not ours.
    fn login(kept: &str, password: &str) -> Result<(), Refused> {
        let mut client = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        let verifier = Verifier::parse(kept).expect("a verifier");
        let (exchange, answer) = Exchange::begin(client.message(), verifier, "abcdefgh12345678")?;
        client.update(answer.as_bytes()).expect("an answer");
        let last = exchange.finish(client.message())?;
        client.finish(last.as_bytes()).expect("the server knows the key");
        Ok(())
    }

    #[test]
    fn who_knows_the_password() {
        let kept = scram_sha_256(b"correct horse");
        assert_eq!(login(&kept, "correct horse"), Ok(()));
        assert_eq!(login(&kept, "correct horsf"), Err(Refused::Wrong));
        let nobody = Verifier::of_nobody("nobody", &[7; 32], (5000, 40));
        assert_eq!(nobody.form(), (5000, 40));
        assert_eq!(nobody, Verifier::of_nobody("nobody", &[7; 32], (5000, 40)));
        assert_ne!(nobody, Verifier::of_nobody("somebody", &[7; 32], (5000, 40)));
    }

    #[test]
    fn malformed_messages() {
        let verifier = Verifier::of_nobody("a", &[1; 32], (4096, 16));
        for first in ["", "n,,", "n,,n=,r=", "p=tls-server-end-point,,n=,r=abc", "n,a=other,n=,r=abc", "x"] {
            assert!(Exchange::begin(first.as_bytes(), verifier.clone(), "own").is_err(), "{first}");
        }
        let (exchange, _) = Exchange::begin(b"n,,n=,r=abc", verifier, "own").expect("begun");
        for last in ["", "c=biws,r=abcown", "c=biws,r=abc,p=AAAA", "c=eSws,r=abcown,p=AAAA", ",p=", "c=biws,p=AAAA"] {
            assert_eq!(exchange.finish(last.as_bytes()), Err(Refused::Malformed), "{last}");
        }
        let proof = STANDARD.encode([0; 32]);
        assert_eq!(exchange.finish(format!("c=biws,r=abcown,p={proof}").as_bytes()), Err(Refused::Wrong));
    }

    #[test]
    fn verifiers() {
        let kept = scram_sha_256(b"x");
        assert!(Verifier::parse(&kept).is_some());
        for wrong in ["", "md5abc", "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA", &kept.replace("4096", "10"), &kept[1..]] {
            assert!(Verifier::parse(wrong).is_none(), "{wrong}");
        }
    }
}
