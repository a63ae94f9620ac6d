//! Lines are a transport: nothing is lost or mixed, however a pipe cuts them.

use mcp_core::testing::check_transport;

#[tokio::test]
async fn a_pipe_keeps_the_promises_of_a_transport() {
    for capacity in [13, 4096, 1024 * 1024] {
        check_transport(|| mcp_stdio::pair(capacity)).await.unwrap();
    }
}
