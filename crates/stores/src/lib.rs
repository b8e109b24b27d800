//! Registers an object store for every location that a statement names.
//!
//! datafusion-cli registers a store for the LOCATION of a table, the target of COPY and the tables of a FROM clause, and knows
//! neither Azure nor `s3a://`. A publication has two locations, which may be in two buckets, and functions take files. So before a
//! statement runs, each URL in it gets its store, with the options of the statement or, as datafusion-cli does it, with what the
//! environment says.

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use datafusion_cli::object_storage::{
    AwsOptions, GcpOptions, get_cos_object_store_builder, get_gcs_object_store_builder, get_oss_object_store_builder,
    get_s3_object_store_builder,
};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use url::{Position, Url};

/// Object stores and their options in a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// URLs, and whether they are surely locations.
    urls: Vec<(Url, bool)>,
    /// Options for stores, such as `aws.region`.
    options: Vec<(String, String)>,
    /// The target of a COPY.
    target: Option<Url>,
}

/// Families of stores that take the same options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Aws,
    Gcp,
    Azure,
    Http,
}

impl Family {
    fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "s3" | "s3a" | "oss" | "cos" => Some(Self::Aws),
            "gs" | "gcs" => Some(Self::Gcp),
            "az" | "azure" | "abfs" | "abfss" | "adl" => Some(Self::Azure),
            "http" | "https" => Some(Self::Http),
            _ => None,
        }
    }

    /// Returns the beginning of the names of its options.
    fn prefix(self) -> &'static str {
        match self {
            Self::Aws => "aws.",
            Self::Gcp => "gcp.",
            Self::Azure => "azure.",
            Self::Http => "http.",
        }
    }
}

impl Named {
    /// Reads URLs and options off the tokens of a statement.
    pub fn in_statement(tokens: &[TokenWithSpan]) -> Self {
        let tokens: Vec<&Token> =
            tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let text = |place: usize| match tokens.get(place) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => Some(text.clone()),
            Some(Token::Word(word)) if word.quote_style.is_some() => Some(word.value.clone()),
            _ => None,
        };
        let word = |place: usize| match tokens.get(place) {
            Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
            _ => None,
        };
        // A key as a text, or as words with a point between.
        let key_before = |place: usize| match (text(place.wrapping_sub(1)), word(place.wrapping_sub(1))) {
            (Some(key), _) => Some(key.to_ascii_lowercase()),
            (None, Some(last)) if tokens.get(place.wrapping_sub(2)) == Some(&&Token::Period) => {
                word(place.wrapping_sub(3)).map(|first| format!("{first}.{last}"))
            }
            (None, last) => last,
        };
        let mut named = Self::default();
        for place in 0..tokens.len() {
            let Some(found) = text(place) else { continue };
            let key = key_before(place);
            let of_store = |key: &String| ["aws.", "gcp.", "azure."].iter().any(|prefix| key.starts_with(prefix));
            if let Some(key) = key.clone().filter(of_store) {
                named.options.push((key, found));
                continue;
            }
            let Ok(url) = Url::parse(&found) else { continue };
            if Family::of(&url).is_none() || url.host_str().is_none_or(str::is_empty) {
                continue;
            }
            let sure = ["location", "to", "from", "join", "private", "anonymize.private"];
            let is_location = key.as_ref().is_some_and(|key| sure.contains(&key.as_str()));
            if key.as_deref() == Some("to") && word(0).as_deref() == Some("copy") {
                named.target = Some(url.clone());
            }
            named.urls.push((url, is_location));
        }
        named
    }

    /// Registers a store for each URL without one or with options of the statement.
    ///
    /// # Errors
    /// When a location has a store that cannot be set up, when it would be taken for another one, and when one that cannot be
    /// written to is to be written to.
    pub async fn register(&self, context: &SessionContext) -> Result<()> {
        if let Some(target) = self.target.as_ref().filter(|target| Family::of(target) == Some(Family::Http)) {
            return plan_err!("{}:// locations can be read, but not written to", target.scheme());
        }
        for (url, is_location) in &self.urls {
            let Some(family) = Family::of(url) else { continue };
            let options: Vec<&(String, String)> =
                self.options.iter().filter(|(key, _)| key.starts_with(family.prefix())).collect();
            one_container(context, url)?;
            if options.is_empty() && context.runtime_env().object_store_registry.get_store(url).is_ok() {
                continue;
            }
            // A text that looks like a location may be none.
            match store(family, url, &options).await {
                Ok(store) => {
                    context.register_object_store(url, store);
                }
                Err(error) if *is_location => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Registers the store of a location, with options from the environment.
///
/// # Errors
/// When the store cannot be set up.
pub async fn register(context: &SessionContext, location: &str) -> Result<()> {
    let urls = Url::parse(location).map(|url| (url, true)).into_iter().collect();
    Named { urls, ..Named::default() }.register(context).await
}

/// Sets up the store of a URL, with options from the environment.
///
/// # Errors
/// When the scheme is unknown, or the store cannot be set up.
pub async fn of_the_environment(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    match Family::of(url) {
        Some(family) => store(family, url, &[]).await,
        None => plan_err!("{}:// is no object store that is known here", url.scheme()),
    }
}

/// Registers the options of all families, so that datafusion-cli accepts them.
pub fn register_options(context: &SessionContext) {
    context.register_table_options_extension(AwsOptions::default());
    context.register_table_options_extension(GcpOptions::default());
    context.register_table_options_extension(AzureOptions);
}

async fn store(family: Family, url: &Url, options: &[&(String, String)]) -> Result<Arc<dyn ObjectStore>> {
    let store: Arc<dyn ObjectStore> = match family {
        Family::Aws => {
            let aws = set(AwsOptions::default(), options)?;
            let builder = match url.scheme() {
                "oss" => get_oss_object_store_builder(url, &aws)?,
                "cos" => get_cos_object_store_builder(url, &aws)?,
                _ => get_s3_object_store_builder(url, &aws, false).await?,
            };
            Arc::new(builder.build()?)
        }
        Family::Gcp => Arc::new(get_gcs_object_store_builder(url, &set(GcpOptions::default(), options)?)?.build()?),
        Family::Azure => Arc::new(azure(url, options)?.build().map_err(|error| azure_error(url, error))?),
        Family::Http => Arc::new(
            HttpBuilder::new()
                .with_client_options(ClientOptions::new().with_allow_http(true))
                .with_url(url.origin().ascii_serialization())
                .build()?,
        ),
    };
    Ok(store)
}

fn set<T: ExtensionOptions>(mut of: T, options: &[&(String, String)]) -> Result<T> {
    for (key, value) in options {
        of.set(key, value)?;
    }
    Ok(of)
}

/// Returns a store in Azure: the environment's settings (`AZURE_STORAGE_ACCOUNT_NAME` and others), and options over them.
fn azure(url: &Url, options: &[&(String, String)]) -> Result<MicrosoftAzureBuilder> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
    for (key, value) in options {
        let name = key.strip_prefix(Family::Azure.prefix()).unwrap_or(key);
        let known: AzureConfigKey = name.parse().map_err(|_| {
            plan_datafusion_err!(
                "unknown option {key}; stores in Azure take azure.account_name with azure.account_key, azure.sas_token, \
                 azure.bearer_token, or azure.client_id, azure.client_secret and azure.tenant_id; and azure.endpoint, \
                 azure.allow_http, azure.use_emulator, azure.skip_signature"
            )
        })?;
        builder = builder.with_config(known, value);
    }
    Ok(builder)
}

/// Adds to an error of the builder the text to write, which it lacks.
fn azure_error(url: &Url, error: object_store::Error) -> DataFusionError {
    let (scheme, text) = (url.scheme(), error.to_string());
    if text.contains("Account must be specified") {
        return plan_datafusion_err!(
            "{scheme}:// of which storage account? Set AZURE_STORAGE_ACCOUNT_NAME or option 'azure.account_name', or write \
             abfss://container@account.dfs.core.windows.net/path"
        );
    }
    DataFusionError::from(error).context(format!(
        "{scheme}://{} is no location in Azure; write {scheme}://container/path, or \
         abfss://container@account.dfs.core.windows.net/path",
        &url[Position::BeforeHost..Position::AfterPort]
    ))
}

/// The container of each storage account that a session has in use. A session keeps stores by host, and the container of
/// `abfss://container@account.host/` is not part of that.
#[derive(Debug, Default)]
pub struct Containers(Mutex<HashMap<String, String>>);

/// # Errors
/// When the URL is of another container of an account than the session has in use: it would lead to the wrong one.
fn one_container(context: &SessionContext, url: &Url) -> Result<()> {
    if url.username().is_empty() || Family::of(url) != Some(Family::Azure) {
        return Ok(());
    }
    let Some(containers) = context.state().config().get_extension::<Containers>() else { return Ok(()) };
    let host = url.host_str().unwrap_or_default();
    let account = host.split('.').next().unwrap_or_default();
    let key = format!("{}://{host}", url.scheme());
    let mut containers = containers.0.lock().unwrap_or_else(PoisonError::into_inner);
    let first = containers.entry(key).or_insert_with(|| url.username().to_owned());
    if *first == url.username() {
        return Ok(());
    }
    plan_err!(
        "this session has container {first} of storage account {account} in use as {}://{first}@{host}/, and has one container of \
         an account by that form; write az://{}/path, with option 'azure.account_name' '{account}'",
        url.scheme(),
        url.username()
    )
}

/// Options of stores in Azure; [`azure`] reads them off the statement.
#[derive(Debug, Clone)]
struct AzureOptions;

impl ConfigExtension for AzureOptions {
    const PREFIX: &'static str = "azure";
}

impl ExtensionOptions for AzureOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, _key: &str, _value: &str) -> Result<()> {
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::prelude::SessionConfig;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn named(sql: &str) -> Named {
        Named::in_statement(&Tokenizer::new(&GenericDialect, sql).tokenize_with_location().unwrap())
    }

    fn urls(sql: &str) -> Vec<(String, bool)> {
        named(sql).urls.into_iter().map(|(url, sure)| (url.to_string(), sure)).collect()
    }

    fn session() -> SessionContext {
        let context =
            SessionContext::new_with_config(SessionConfig::new().with_extension(Arc::new(Containers::default())));
        register_options(&context);
        context
    }

    async fn refusal(context: &SessionContext, sql: &str) -> String {
        named(sql).register(context).await.unwrap_err().strip_backtrace()
    }

    #[test]
    fn urls_and_options_are_found_wherever_they_stand() {
        let sql = "CREATE EXTERNAL TABLE t STORED AS PUBLICATION LOCATION 's3://lake/t/'
            OPTIONS ('private' 's3a://ledgers/t/', 'aws.region' 'eu-west-1', aws.endpoint 'http://localhost:9000', 'm' '2')";
        let named = named(sql);
        let found: Vec<_> = named.urls.iter().map(|(url, sure)| (url.as_str(), *sure)).collect();
        assert_eq!(found, [("s3://lake/t/", true), ("s3a://ledgers/t/", true)]);
        let options = [("aws.region", "eu-west-1"), ("aws.endpoint", "http://localhost:9000")];
        assert_eq!(named.options, options.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let prefixed =
            "CREATE EXTERNAL TABLE t STORED AS PUBLICATION LOCATION 'x' OPTIONS (anonymize.private 'az://l/t')";
        assert_eq!(urls(prefixed), [("az://l/t".to_owned(), true)]);
        let sql =
            "SELECT 'https://example.org', 'file:///x', 'a:b' FROM 'az://lake/a.parquet' JOIN \"gs://b/c.csv\" ON true";
        let expected = [("https://example.org/", false), ("az://lake/a.parquet", true), ("gs://b/c.csv", true)];
        assert_eq!(urls(sql), expected.map(|(url, sure)| (url.to_owned(), sure)));
        let call = "SELECT * FROM mondrian('abfss://c@acct.dfs.core.windows.net/x.parquet', 2, quasi => age)";
        assert_eq!(urls(call), [("abfss://c@acct.dfs.core.windows.net/x.parquet".to_owned(), false)]);
    }

    #[tokio::test]
    async fn stores_in_azure_are_registered() {
        let context = session();
        let account = "'azure.account_name' 'acct', 'azure.account_key' 'a2V5'";
        let sql = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'az://lake/t/' OPTIONS ({account})");
        named(&sql).register(&context).await.unwrap();
        named("SELECT * FROM 'abfss://lake@acct.dfs.core.windows.net/t.parquet'").register(&context).await.unwrap();
        for url in ["az://lake", "abfss://acct.dfs.core.windows.net"] {
            let url = ObjectStoreUrl::parse(url).unwrap();
            let store = context.runtime_env().object_store(&url).unwrap();
            assert!(store.to_string().contains("MicrosoftAzure"), "{store}");
        }
    }

    #[tokio::test]
    async fn what_is_no_location_in_azure_is_refused() {
        let context = session();
        for (location, options, expected) in [
            ("az://la.ke/t/", "", "is no location in Azure; write az://container/path"),
            ("abfss://c@acct.example.org/t/", "", "is no location in Azure"),
            (
                "az://lake/t/",
                "'azure.acount' 'x'",
                "unknown option azure.acount; stores in Azure take azure.account_name",
            ),
        ] {
            let sql = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{location}' OPTIONS ({options})");
            let message = refusal(&context, &sql).await;
            assert!(message.contains(expected), "{message}");
        }
        if std::env::var_os("AZURE_STORAGE_ACCOUNT_NAME").is_none() {
            let message = refusal(&context, "SELECT * FROM 'az://lake/t.parquet'").await;
            assert!(message.contains("of which storage account? Set AZURE_STORAGE_ACCOUNT_NAME"), "{message}");
        }
    }

    #[tokio::test]
    async fn two_containers_of_an_account_are_not_mixed_up() {
        let context = session();
        named("SELECT * FROM 'abfss://one@acct.dfs.core.windows.net/t.parquet'").register(&context).await.unwrap();
        let message = refusal(&context, "SELECT * FROM 'abfss://two@acct.dfs.core.windows.net/t.parquet'").await;
        let expected = "write az://two/path, with option 'azure.account_name' 'acct'";
        assert!(
            message.contains("has container one of storage account acct in use") && message.contains(expected),
            "{message}"
        );
    }

    #[tokio::test]
    async fn the_web_can_only_be_read() {
        let context = session();
        let message = refusal(&context, "COPY t TO 'https://example.org/t.parquet'").await;
        assert_eq!(message, "Error during planning: https:// locations can be read, but not written to");
        named("SELECT * FROM 'https://example.org/t.parquet'").register(&context).await.unwrap();
        let url = ObjectStoreUrl::parse("https://example.org").unwrap();
        assert!(context.runtime_env().object_store(&url).is_ok());
        // A text is no location.
        named("SELECT 'az://la.ke/t', 's3://'").register(&context).await.unwrap();
    }
}
