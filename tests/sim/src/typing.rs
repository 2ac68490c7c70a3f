//! One page that several people type into while it is saved by a program, committed, and while
//! the server dies: what was acknowledged is there once, and all copies are the same.
//! Events and messages are captured beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use escurel_core::api::{ExpandRequest, MessagesRequest, NewEvent, NewMessage, UpdateRequest};
use escurel_core::{Chore, Hello, Listener, OpenRequest, Said};
use escurel_live::Document;
use escurel_md::Layout;
use escurel_store::{Loss, Store};
use parking_lot::Mutex;

use crate::index::Fate;
use crate::rng::Rng;
use crate::world::{Cast, Outcome, World, text};

const PAGE: &str = "typed.md";
const BEGINNING: &str = "# Page\n\nfirst line\n\nlast line\n";
const PEOPLE: usize = 3;
/// Longer than a pause after which a page is saved. Microseconds.
const PAUSE: i64 = 3_000_000;

/// Somebody with a copy of the page.
struct Person {
    number: u64,
    copy: Option<Copy>,
}

struct Copy {
    document: Document,
    session: String,
    lineage: String,
    peer: u64,
    heard: Arc<Heard>,
    /// What was acknowledged. All after it is sent again after a crash, others' words that were heard
    /// among it.
    saved: Vec<u8>,
}

#[derive(Default)]
struct Heard(Mutex<Vec<Vec<u8>>>);

impl Listener for Heard {
    fn wants_text(&self) -> bool {
        false
    }

    fn hear(&self, said: &Said) {
        if let Said::Op { op, .. } = said {
            self.0.lock().push(op.to_vec());
        }
    }
}

/// What the typing came to; the error says what is wrong.
struct Room {
    world: World,
    rng: Rng,
    people: Vec<Person>,
    words: u32,
    /// Words that have to stand there once.
    saved: Vec<String>,
    events: BTreeMap<String, String>,
    messages: Vec<String>,
}

/// Plays a schedule of typing.
///
/// # Errors
/// What was wrong, and at which step.
pub fn type_seed(seed: u64, steps: u32, cast: Cast) -> Result<(), String> {
    let world = World::new(seed, Layout::Vault, cast)?;
    world.store.put_file(PAGE, BEGINNING.as_bytes());
    let people = (1..=PEOPLE as u64).map(|number| Person { number, copy: None });
    let mut room = Room {
        world,
        rng: Rng::new(seed),
        people: people.collect(),
        words: 0,
        saved: Vec::new(),
        events: BTreeMap::new(),
        messages: Vec::new(),
    };
    room.chore(Chore::Scan)?;
    for step in 0..steps {
        let done = room.step().and_then(|()| room.check());
        done.map_err(|why| format!("seed {seed}, typing step {step}: {why}"))?;
    }
    room.end()
        .map_err(|why| format!("seed {seed}, the end of the typing: {why}"))
}

impl Room {
    fn step(&mut self) -> Outcome {
        self.world.tick();
        let who = self.rng.below(PEOPLE as u32) as usize;
        match self.rng.below(20) {
            0..=7 => self.type_word(who),
            8 => self.save_outside(),
            9 => self.update(),
            10 => self.close(who),
            11 => self.event(),
            12 => self.message(),
            13..=16 => {
                let chores = [Chore::Attend, Chore::Scan, Chore::Fold, Chore::Save];
                let chore = chores[self.rng.below(4) as usize].clone();
                self.chore(chore)
            }
            17 => {
                self.world.clock.advance(PAUSE);
                self.chore(Chore::Attend)
            }
            _ => self.crash(),
        }
    }

    fn chore(&self, chore: Chore) -> Outcome {
        self.world.kb.do_chore(&chore).map_err(text)
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("word{:05}", self.words)
    }

    fn join(&mut self, who: usize) -> Outcome {
        let kb = &self.world.kb;
        let me = self.world.me();
        let request = OpenRequest {
            page_id: PAGE.to_owned(),
            autosave: self.rng.one_in(2),
            ..OpenRequest::default()
        };
        let opened = kb.open_session(&me, &request).map_err(text)?;
        let document = Document::load(&opened.snapshot).map_err(text)?;
        let number = self.people[who].number;
        self.people[who].number += 100;
        document.write_as(number).map_err(text)?;
        let copy = Copy {
            document,
            session: opened.session,
            lineage: opened.lineage,
            peer: 0,
            heard: Arc::default(),
            saved: Vec::new(),
        };
        self.people[who].copy = Some(copy);
        self.attach(who)
    }

    /// Says hello, takes what is lacking and sends what may be lacking there.
    fn attach(&mut self, who: usize) -> Outcome {
        let (kb, me) = (self.world.kb.clone(), self.world.me());
        let Some(copy) = &mut self.people[who].copy else {
            return Ok(());
        };
        let hello = Hello {
            session: copy.session.clone(),
            lineage: Some(copy.lineage.clone()),
            have: Some(copy.document.version()),
        };
        copy.heard = Arc::default();
        let attached = kb.attach(&me, &hello, copy.heard.clone()).map_err(text)?;
        copy.peer = attached.peer;
        copy.document.import(&attached.update).map_err(text)?;
        if !copy.saved.is_empty() {
            let op = copy.document.since(&copy.saved).map_err(text)?;
            let sent = kb.change(&me, &copy.session, Some(copy.peer), &op, false);
            sent.map_err(|refusal| format!("sent again: {refusal}"))?;
        }
        kb.make_durable(&copy.session).map_err(text)?;
        copy.saved = copy.document.version();
        Ok(())
    }

    fn listen(&mut self, who: usize) -> Outcome {
        if let Some(copy) = &self.people[who].copy {
            for op in std::mem::take(&mut *copy.heard.0.lock()) {
                copy.document.import(&op).map_err(text)?;
            }
        }
        Ok(())
    }

    fn type_word(&mut self, who: usize) -> Outcome {
        if self.people[who].copy.is_none() {
            self.join(who)?;
        }
        if self.rng.one_in(2) {
            self.listen(who)?;
        }
        let word = self.word();
        let (place, saved) = (self.rng.below(1 << 16) as usize, !self.rng.one_in(4));
        let (kb, me) = (self.world.kb.clone(), self.world.me());
        let Some(copy) = &mut self.people[who].copy else {
            return Ok(());
        };
        let before = copy.document.version();
        let old = copy.document.text();
        let mut lines: Vec<&str> = old.split_inclusive('\n').collect();
        let new = format!("🛶 {word}\n");
        lines.insert(2 + place % (lines.len() - 1), &new);
        copy.document.set_text(&lines.concat()).map_err(text)?;
        let op = copy.document.since(&before).map_err(text)?;
        kb.change(&me, &copy.session, Some(copy.peer), &op, false)
            .map_err(text)?;
        if saved {
            kb.make_durable(&copy.session).map_err(text)?;
            copy.saved = copy.document.version();
        }
        self.saved.push(word);
        Ok(())
    }

    /// A program adds a line to the file as it finds it.
    fn save_outside(&mut self) -> Outcome {
        let word = self.word();
        let found = self.world.files()?.remove(PAGE).unwrap_or_default();
        let found = String::from_utf8_lossy(&found).into_owned();
        let new = found.replacen("last line\n", &format!("disk {word}\nlast line\n"), 1);
        self.world.store.put_file(PAGE, new.as_bytes());
        self.saved.push(word);
        self.chore(Chore::Scan)
    }

    fn update(&mut self) -> Outcome {
        let (kb, me) = (self.world.kb.clone(), self.world.me());
        let word = self.word();
        let Some((page, old)) = kb.page_text(&me, PAGE).map_err(text)? else {
            return Err("the page is gone".to_owned());
        };
        let content = old.replacen("first line\n", &format!("first line\ntool {word}\n"), 1);
        let request = UpdateRequest {
            page_id: PAGE.to_owned(),
            content,
            base_version: Some(page.version),
            ..UpdateRequest::default()
        };
        let answer = kb.update_page(&me, &request).map_err(text)?;
        match answer.ok {
            true => self.saved.push(word),
            false => return Err(format!("update_page: {:?}", answer.issues)),
        }
        Ok(())
    }

    fn close(&mut self, who: usize) -> Outcome {
        self.listen(who)?;
        let (kb, me) = (self.world.kb.clone(), self.world.me());
        if let Some(copy) = self.people[who].copy.take() {
            let closed = kb.close_session(&me, &copy.session, true).map_err(text)?;
            if !closed.ok {
                return Err(format!("close_session: {:?}", closed.issues));
            }
        }
        Ok(())
    }

    fn event(&mut self) -> Outcome {
        let id = self.word();
        let body = format!("body of {id}");
        let event = NewEvent {
            event_id: Some(id.clone()),
            body: Some(body.clone()),
            ..NewEvent::default()
        };
        let me = self.world.me();
        self.world.kb.capture_event(&me, &event).map_err(text)?;
        self.events.insert(id, body);
        Ok(())
    }

    fn message(&mut self) -> Outcome {
        let id = self.word();
        let message = NewMessage {
            chat_group_id: "group".to_owned(),
            msg_id: Some(id.clone()),
            content: id.clone(),
            ..NewMessage::default()
        };
        let me = self.world.me();
        self.world.kb.append_message(&me, &message).map_err(text)?;
        self.messages.push(id);
        Ok(())
    }

    /// The server dies and is started again; everybody who had the page open comes back.
    fn crash(&mut self) -> Outcome {
        let loss = match self.rng.below(3) {
            0 => Loss::Kill,
            _ => Loss::Power {
                torn: self.rng.pick(&[0, 0, 7, 40]),
            },
        };
        let survivor = self.world.crash_now(loss, Fate::Kept)?;
        self.world.go_on(survivor, None)?;
        for who in 0..PEOPLE {
            self.attach(who)
                .map_err(|why| format!("after {loss:?}: {why}"))?;
        }
        Ok(())
    }

    /// The page as it is being typed.
    fn shown(&self) -> Outcome<String> {
        let request = ExpandRequest {
            page_id: PAGE.to_owned(),
            max_chars: usize::MAX,
            ..ExpandRequest::default()
        };
        let shown = self.world.kb.expand(&self.world.me(), &request);
        let shown = shown.map_err(text)?.ok_or("the page is gone")?;
        Ok(shown.body)
    }

    fn check(&mut self) -> Outcome {
        let shown = self.shown()?;
        for word in &self.saved {
            match shown.matches(word.as_str()).count() {
                1 => {}
                n => return Err(format!("{word} stands there {n} times: {shown:?}")),
            }
        }
        self.check_events()
    }

    fn check_events(&self) -> Outcome {
        let (kb, me) = (&self.world.kb, self.world.me());
        let listed = kb.list_inbox(&me, 500, None).map_err(text)?.events;
        let told: BTreeMap<String, String> = listed
            .into_iter()
            .map(|event| (event.event_id, event.body.unwrap_or_default()))
            .collect();
        if told != self.events {
            return Err(format!("events are {told:?}, not {:?}", self.events));
        }
        let messages = MessagesRequest {
            chat_group_id: "group".to_owned(),
            limit: 500,
            ..MessagesRequest::default()
        };
        let listed = kb.list_messages(&me, &messages).map_err(text)?.messages;
        let told: Vec<String> = listed.into_iter().map(|message| message.msg_id).collect();
        match told == self.messages {
            true => Ok(()),
            false => Err(format!("messages are {told:?}, not {:?}", self.messages)),
        }
    }

    /// Everybody hears everything; then all copies, the page and its file are the same.
    fn end(&mut self) -> Outcome {
        self.chore(Chore::Attend)?;
        let shown = self.shown()?;
        for who in 0..PEOPLE {
            self.listen(who)?;
            if let Some(copy) = &self.people[who].copy
                && copy.document.text() != shown
            {
                return Err(format!(
                    "a copy says {:?}, the page {shown:?}",
                    copy.document.text()
                ));
            }
        }
        for who in 0..PEOPLE {
            self.close(who)?;
        }
        let file = self.world.files()?.remove(PAGE).unwrap_or_default();
        if String::from_utf8_lossy(&file) != shown {
            return Err(format!(
                "the file holds {:?}, not {shown:?}",
                String::from_utf8_lossy(&file)
            ));
        }
        let journal = self.world.store.verify_journal();
        match journal.clean() {
            true => self.check(),
            false => Err(format!("{:?}", journal.findings)),
        }
    }
}
