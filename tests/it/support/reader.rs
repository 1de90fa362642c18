//! A reader of a stream, on a connection of its own, that does with it as it likes.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// What no test waits longer for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes little more than it reads.
const RECEIVE_BUFFER: u32 = 4_096;

pub struct Reader(TcpStream);

impl Reader {
    /// Has asked, and read nothing yet.
    pub async fn ask(url: &str, path: &str) -> Self {
        Self::ask_from("127.0.0.1", url, path).await
    }

    /// The same from another address of this host.
    pub async fn ask_from(address: &str, url: &str, path: &str) -> Self {
        Self::connect(address, url, path, "").await
    }

    /// The same for a WebSocket.
    pub async fn upgrade(url: &str, path: &str) -> Self {
        let headers = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        Self::connect("127.0.0.1", url, path, headers).await
    }

    async fn connect(from: &str, url: &str, path: &str, headers: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let address = url.trim_start_matches("http://").parse().unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Self(stream)
    }

    /// Sends so many more requests, as far as they are taken.
    pub async fn ask_on(&mut self, path: &str, count: usize) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        // The other side may end meanwhile.
        let _ = self.0.write_all(request.repeat(count).as_bytes()).await;
    }

    /// Reads all of a stream up to the end of its snapshot, so that nothing is left when it closes.
    pub async fn snapshot(&mut self) {
        self.until("}\n\n\r\n").await;
    }

    /// Reads up to this text.
    pub async fn until(&mut self, text: &str) {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(text) {
            let count = timeout(PATIENCE, self.0.read_buf(&mut read));
            let count = count.await.expect("text in time").unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        }
    }

    /// The status of the answer.
    pub async fn status(&mut self) -> u16 {
        let mut line = [0; "HTTP/1.1 200".len()];
        let read = timeout(PATIENCE, self.0.read_exact(&mut line));
        read.await.expect("an answer in time").unwrap();
        String::from_utf8_lossy(&line[9..]).parse().unwrap()
    }

    /// Reads until the other side has ended, however it does.
    pub async fn is_cut(&mut self) {
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, self.0.read_to_end(&mut rest));
        let _ = end.await.expect("an end in time");
    }

    /// Says that it sends no more, and goes on reading; what comes until the other side ends too.
    pub async fn finish(&mut self) -> String {
        self.0.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, self.0.read_to_end(&mut rest));
        end.await.expect("an end in time").unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }
}
