//! Lists of memories: what they hold, what a search finds, and how they are paged.

use serde_json::json;

use crate::support::{TestApp, stories};

stories!(
    lists_show_what_was_asked_for,
    people_see_what_is_about_them_shared_or_their_agents,
    words_are_found_in_every_spelling,
    pages_by_cursor_and_by_number,
);

async fn lists_show_what_was_asked_for(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    app.organization("acme", &[&olga]).await;
    let (id, other) = (&olga.id, &eve.id);
    ana.remembers(json!({"content": "own private"})).await;
    ana.remembers(json!({"content": "own subject", "subject_id": id})).await;
    ana.remembers(json!({"content": "own shared", "scope": "organization"})).await;
    bob.remembers(json!({"content": "bob private"})).await;
    bob.remembers(json!({"content": "bob subject", "subject_id": id})).await;
    bob.remembers(json!({"content": "bob other", "subject_id": other})).await;
    bob.remembers(json!({"content": "bob shared", "scope": "organization"})).await;
    bob.remembers(json!({"content": "bob shared of olga", "scope": "organization", "subject_id": id})).await;
    let everything_own = ["own shared", "own subject", "own private"];
    for (query, found) in [
        (String::new(), &everything_own[..]),
        ("?memory_scope=me&scope=all".into(), &everything_own),
        ("?scope=agent".into(), &["own private"]),
        ("?scope=subject".into(), &["own subject"]),
        ("?scope=organization".into(), &["own shared"]),
        (format!("?subject_id={id}"), &["own subject"]),
        (format!("?subject_id={other}"), &[]),
        ("?memory_scope=org".into(), &["bob shared of olga", "bob shared", "own shared"]),
        ("?memory_scope=org&scope=organization".into(), &["bob shared of olga", "bob shared", "own shared"]),
        (format!("?memory_scope=org&subject_id={id}"), &["bob shared of olga"]),
        (
            "?memory_scope=org&scope=all".into(),
            &["bob shared of olga", "bob shared", "own shared", "own subject", "own private"],
        ),
        ("?memory_scope=org&scope=agent".into(), &["own private"]),
        ("?memory_scope=org&scope=subject".into(), &["own subject"]),
        (format!("?memory_scope=org&scope=subject&subject_id={id}"), &["bob subject", "own subject"]),
        (format!("?memory_scope=org&scope=subject&subject_id={other}"), &["bob other"]),
    ] {
        assert_eq!(ana.recalls(&query).await, found, "{query}");
    }
}

async fn people_see_what_is_about_them_shared_or_their_agents(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    app.organization("acme", &[&olga, &eve]).await;
    let (ana, bob) = (app.agent("ana").await, eve.registers("bob").await);
    let room = ana.creates_room().await;
    ana.remembers(json!({"content": "ana private"})).await;
    bob.remembers(json!({"content": "bob private"})).await;
    bob.remembers(json!({"content": "bob private of olga", "scope": "agent", "subject_id": olga.id})).await;
    ana.remembers(json!({"content": "ana private of olga", "scope": "agent", "subject_id": olga.id})).await;
    bob.remembers(json!({"content": "about olga", "subject_id": olga.id})).await;
    ana.remembers(json!({"content": "about eve", "subject_id": eve.id})).await;
    ana.remembers(json!({"content": "shared", "scope": "organization"})).await;
    bob.remembers(json!({"content": "shared of olga", "scope": "organization", "subject_id": olga.id})).await;
    let all = ["shared of olga", "shared", "about olga", "ana private of olga", "ana private"];
    for (query, found) in [
        (String::new(), &all[..]),
        ("?scope=all".into(), &all),
        ("?scope=about_me".into(), &["shared of olga", "about olga", "ana private of olga"]),
        ("?scope=organization".into(), &["shared of olga", "shared"]),
        ("?scope=room".into(), &[]),
        (format!("?chat_room_id={}", room.id), &[]),
        (format!("?source_agent_id={}", bob.id), &["shared of olga", "about olga"]),
        (format!("?source_agent_id={}&scope=organization", ana.id), &["shared"]),
        (format!("?source_agent_id={}", olga.id), &[]),
    ] {
        assert_eq!(olga.recalls(&query).await, found, "{query}");
    }
    assert_eq!(eve.recalls("").await, ["shared of olga", "shared", "about eve", "bob private of olga", "bob private"]);
}

async fn words_are_found_in_every_spelling(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    for content in [
        "Café au lait, 3.14 sugars",
        "STRASSE in München",
        "東京都で寿司を食べた",
        "foo-bar foo_baz 1e5x",
        "नमस्ते दुनिया",
        "x\"y AND NOT (z*) ^col: {a}",
        "🚀",
        "The quick brown fox",
    ] {
        ana.remembers(json!({"content": content})).await;
    }
    ana.remembers(json!({"content": "tea", "thought": "coffee", "metadata": {"tags": ["cocoa"]}})).await;
    let long: String = (0..1000).map(|at| char::from_u32(0x7000 + at).unwrap()).collect();
    ana.remembers(json!({"content": long})).await;
    for (words, found) in [
        ("cafe", &["Café au lait, 3.14 sugars"][..]),
        ("CAFÉ lait", &["Café au lait, 3.14 sugars"]),
        ("lait cafe 14", &["Café au lait, 3.14 sugars"]),
        ("straße", &["STRASSE in München"]),
        ("munchen strasse", &["STRASSE in München"]),
        ("東京", &["東京都で寿司を食べた"]),
        ("京都", &["東京都で寿司を食べた"]),
        ("京", &["東京都で寿司を食べた"]),
        ("寿司 東京", &["東京都で寿司を食べた"]),
        ("東寿", &[]),
        ("foo bar", &["foo-bar foo_baz 1e5x"]),
        ("1e5x", &["foo-bar foo_baz 1e5x"]),
        // Parts of a word, which PostgreSQL's own parser would find.
        ("x", &["x\"y AND NOT (z*) ^col: {a}"]),
        ("1e5", &[]),
        ("नमस्ते", &["नमस्ते दुनिया"]),
        // Nothing in a search is an operator.
        ("and not", &["x\"y AND NOT (z*) ^col: {a}"]),
        ("\"x\" OR fox", &[]),
        ("fo*", &[]),
        ("col:a", &["x\"y AND NOT (z*) ^col: {a}"]),
        ("fox", &["The quick brown fox"]),
        ("fox cafe", &[]),
        ("fo", &[]),
        ("quick' OR '1'='1", &[]),
        ("fox & !cafe | x", &[]),
        // Only the content is searched.
        ("coffee", &[]),
        ("cocoa", &[]),
        // What holds no word is found nowhere.
        ("🚀", &[]),
        ("?!", &[]),
        (long.as_str(), &[long.as_str()]),
    ] {
        let query: String = form_urlencoded(words);
        for who in [&ana, &olga] {
            let reply = who.get(&format!("memories?content_query={query}")).await.assert_status(200);
            assert_eq!(reply.strings("content"), found, "{words:?}");
            assert_eq!(reply.metadata()["total_count"], found.len(), "{words:?}");
        }
    }
    // Blank means that nothing is looked for.
    for blank in ["", "%20"] {
        let reply = ana.get(&format!("memories?content_query={blank}")).await.assert_status(200);
        assert_eq!(reply.rows().len(), 10);
    }
    ana.get("memories?content_query=%00").await.assert_status(200);
    let fox = ana.get("memories?content_query=fox").await.rows()[0]["id"].as_str().unwrap().to_owned();
    olga.delete(&format!("memories/{fox}")).await.assert_status(204);
    assert_eq!(ana.recalls("?content_query=fox&status=all").await, Vec::<String>::new());
    if app.database.engine() == bandstand_store::testing::TestEngine::Sqlite {
        // The index holds what the table does.
        app.database.execute("INSERT INTO memories_search (memories_search) VALUES ('integrity-check')");
    }
}

/// Percent-encodes a text for a query.
pub(crate) fn form_urlencoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

async fn pages_by_cursor_and_by_number(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let bob = app.agent("bob").await;
    let mut newest_first = Vec::new();
    for number in 0..60 {
        // Several at the same moment.
        app.clock.advance(if number % 3 == 0 { 1 } else { 0 });
        ana.remembers(json!({"content": format!("memory {number}")})).await;
        newest_first.insert(0, format!("memory {number}"));
    }
    for who in [&ana, &olga] {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = who.get(&format!("memories?limit=25{cursor}")).await.assert_status(200);
            assert_eq!(page.json()["meta"], page.json()["metadata"]);
            assert_eq!(page.metadata()["limit"], 25);
            assert!(page.metadata().get("total_count").is_none(), "a walk by cursor counts nothing");
            seen.extend(page.strings("content"));
            pages += 1;
            match page.metadata()["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((pages, &seen), (3, &newest_first), "by cursor");

        let mut seen = Vec::new();
        for number in 1..=3 {
            let page = who.get(&format!("memories?page={number}&page_size=25")).await.assert_status(200);
            let metadata = page.metadata();
            assert_eq!(
                [&metadata["page"], &metadata["page_size"], &metadata["total_count"], &metadata["total_pages"]],
                [number, 25, 60, 3],
            );
            assert_eq!(metadata["has_more"], number < 3);
            seen.extend(page.strings("content"));
        }
        assert_eq!(seen, newest_first, "by number");
        assert_eq!(who.get("memories?page=99").await.assert_status(200).rows().len(), 0);
        let huge = who.get("memories?page=9223372036854775807&page_size=50").await.assert_status(200);
        assert_eq!(huge.rows().len(), 0);
    }
    for (query, rows, limit) in [
        ("", 20, 20),
        ("?page=1", 20, 20),
        ("?page_size=50", 50, 50),
        ("?page_size=100", 50, 50),
        ("?limit=500", 60, 100),
    ] {
        let page = ana.get(&format!("memories{query}")).await.assert_status(200);
        assert_eq!((page.rows().len(), &page.metadata()["limit"]), (rows, &json!(limit)), "{query}");
    }
    for mixed in ["?page=1&limit=5", "?page_size=5&cursor=x", "?cursor=x&page=2"] {
        ana.get(&format!("memories{mixed}")).await.assert_error(422, "invalid_params");
        olga.get(&format!("memories{mixed}")).await.assert_error(422, "invalid_params");
    }

    // A cursor belongs to its list: the same filters of the same caller.
    let first = ana.get("memories?limit=5&system=long_term&content_query=memory").await.assert_status(200);
    let cursor = first.metadata()["next_cursor"].as_str().unwrap().to_owned();
    let same = format!("memories?system=long_term&content_query=MEMORY&limit=9&cursor={cursor}");
    assert_eq!(ana.get(&same).await.assert_status(200).strings("content"), newest_first[5..14]);
    for (who, query) in [
        (&ana, ""),
        (&ana, "&system=long_term"),
        (&ana, "&system=working&content_query=memory"),
        (&ana, "&system=long_term&content_query=other"),
        (&ana, "&system=long_term&content_query=memory&status=all"),
        (&bob, "&system=long_term&content_query=memory"),
        (&olga, "&system=long_term&content_query=memory"),
    ] {
        let reply = who.get(&format!("memories?cursor={cursor}{query}")).await;
        reply.assert_error(422, "cursor_filter_mismatch");
    }
    ana.get("memories?cursor=AAAA").await.assert_invalid(&["/cursor"]);
}
