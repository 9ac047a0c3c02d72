#include "agent/server/fork_server.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probes/probes.h"
#include "agent/process.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {
namespace {

using protocol::ServerHello;
using protocol::ServerReply;
using protocol::ServerRequest;
static_assert(sizeof ServerHello::refusal == refusal_size);

int socket_number = -1;

// A child keeps it as the memory of its arguments and environment.
struct Request {
  ServerRequest head;
  int output;
  int errors;
  char** arguments;  // these three are null-terminated
  char** variables;
  char** environment;  // room for it
  const char* end_of_arguments;
};

[[noreturn]] void leave() {
  for (;;) raw_syscall(__NR_exit_group, 0);
}

bool send_bytes(const void* bytes, size_t size) {
  const long sent = raw_syscall(__NR_sendto, socket_number, as_word(bytes), static_cast<long>(size),
                                MSG_NOSIGNAL);
  return sent == static_cast<long>(size);
}

bool receive_bytes(char* bytes, size_t size) {
  while (size > 0) {
    const long got =
        raw_syscall(__NR_recvfrom, socket_number, as_word(bytes), static_cast<long>(size));
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool receive_head(Request& request) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  iovec part{&request.head, sizeof request.head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long got;
  do {
    got = raw_syscall(__NR_recvmsg, socket_number, as_word(&message), MSG_CMSG_CLOEXEC);
  } while (got == -EINTR);
  const cmsghdr* files = CMSG_FIRSTHDR(&message);
  if (got != sizeof request.head || files == nullptr || files->cmsg_type != SCM_RIGHTS ||
      files->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return false;
  memcpy(&request.output, CMSG_DATA(files), sizeof(int));
  memcpy(&request.errors, CMSG_DATA(files) + sizeof(int), sizeof(int));
  return true;
}

char* make_room(size_t size) {
  const long mapped = raw_syscall(__NR_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return failed(mapped) ? nullptr : reinterpret_cast<char*>(mapped);
}

// Points at `count` strings, which must all end before `end`.
char* point_at(char** words, uint32_t count, char* text, const char* end) {
  for (uint32_t i = 0; i < count && text != nullptr; ++i) {
    words[i] = text;
    void* zero = memchr(text, 0, static_cast<size_t>(end - text));
    text = zero != nullptr ? static_cast<char*>(zero) + 1 : nullptr;
  }
  words[count] = nullptr;
  return text;
}

size_t environment_size() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  return count;
}

bool receive(Request& request) {
  if (!receive_head(request)) return false;
  const ServerRequest& head = request.head;
  if (head.size > protocol::largest_request || head.arguments > head.size ||
      head.variables > head.size)
    return false;
  const size_t words = size_t{head.arguments} + 2 * head.variables + environment_size() + 3;
  char* room = make_room(words * sizeof(char*) + head.size);
  if (room == nullptr) return false;
  request.arguments = reinterpret_cast<char**>(room);
  request.variables = request.arguments + head.arguments + 1;
  request.environment = request.variables + head.variables + 1;
  char* text = reinterpret_cast<char*>(request.arguments + words);
  const char* end = text + head.size;
  if (!receive_bytes(text, head.size)) return false;
  text = point_at(request.arguments, head.arguments, text, end);
  request.end_of_arguments = text;
  return text != nullptr && point_at(request.variables, head.variables, text, end) != nullptr;
}

void tell(bool begun, long child) {
  const ServerReply word{begun, static_cast<int32_t>(child)};
  send_bytes(&word, sizeof word);
}

bool supervisor_is_gone() {
  char byte;
  return raw_syscall(__NR_recvfrom, socket_number, as_word(&byte), 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Like libc's fork, except for the parent: the child belongs to whoever waits for this server.
long fork_sibling() {
  int* tid = nullptr;
  void* robust_list = nullptr;
  size_t robust_size = 0;
  raw_syscall(__NR_prctl, PR_GET_TID_ADDRESS, as_word(&tid));
  raw_syscall(__NR_get_robust_list, 0, as_word(&robust_list), as_word(&robust_size));
  const long child =
      raw_syscall(__NR_clone, CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0,
                  0, as_word(tid), 0);
  if (child == 0) {
    raw_syscall(__NR_set_robust_list, as_word(robust_list), static_cast<long>(robust_size));
    raw_syscall(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);  // as in a spawned process
  }
  return child;
}

void move_descriptor(int from, int to) {
  raw_syscall(__NR_dup2, from, to);
  raw_syscall(__NR_close, from);
}

// What a descriptor shares with its copies, a test may change.
void open_empty_input() {
  const long input = raw_syscall(__NR_openat, AT_FDCWD, as_word("/dev/null"), O_RDONLY);
  if (failed(input) || input == STDIN_FILENO) return;
  move_descriptor(static_cast<int>(input), STDIN_FILENO);
}

// Some programs take their seed from these 16 bytes.
void renew_random_bytes() {
  const unsigned long bytes = getauxval(AT_RANDOM);
  if (bytes != 0) raw_syscall(__NR_getrandom, static_cast<long>(bytes), 16, 0);
}

size_t name_size(const char* variable) {
  return strcspn(variable, "=");
}

bool is_same_variable(const char* one, const char* other) {
  const size_t size = name_size(one);
  return size == name_size(other) && memcmp(one, other, size) == 0;
}

bool is_changed(const char* entry, char** variables) {
  for (; *variables != nullptr; ++variables)
    if (is_same_variable(entry, *variables)) return true;
  return is_same_variable(entry, protocol::fork_server_variable);
}

// What constructors did to the environment stays.
void change_environment(const Request& request) {
  char** next = request.environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!is_changed(*entry, request.variables)) *next++ = *entry;
  for (char** variable = request.variables; *variable != nullptr; ++variable)
    if (strchr(*variable, '=') != nullptr) *next++ = *variable;
  *next = nullptr;
  environ = request.environment;
}

Arguments become_the_run(const Request& request) {
  raw_syscall(__NR_setsid);
  open_empty_input();
  move_descriptor(request.output, STDOUT_FILENO);
  move_descriptor(request.errors, STDERR_FILENO);
  renew_random_bytes();
  show_command_line(request.arguments[0], request.end_of_arguments);
  change_environment(request);
  tell(true, raw_syscall(__NR_getpid));
  raw_syscall(__NR_close, socket_number);
  socket_number = -1;
  join_run(getenv(protocol::memory_variable));
  return {static_cast<int>(request.head.arguments), request.arguments};
}

Arguments wait_in_stock(const int (&taken)[2]) {
  run_child_handlers();
  Request request;
  raw_syscall(__NR_close, taken[0]);
  if (!receive(request)) leave();
  raw_syscall(__NR_close, taken[1]);
  return become_the_run(request);
}

void wait_for_end_of(int pipe) {
  char byte;
  while (raw_syscall(__NR_read, pipe, as_word(&byte), 1) == -EINTR) {
  }
}

void say_hello() {
  ServerHello hello{protocol::magic, protocol::version, opens_libraries(), ""};
  const bool refused = find_refusal(socket_number, hello.refusal);
  if (!send_bytes(&hello, sizeof hello) || refused) leave();
  read_memory_layout();
}

// Known to leak checkers as long as it is here.
__attribute__((used)) void* heap_gap;

uint64_t random_number() {
  uint64_t number = 0;
  raw_syscall(__NR_getrandom, as_word(&number), sizeof number, 0);
  return number;
}

}  // namespace

void plan_to_serve(const char* socket) {
  socket_number = atoi(socket);
}

bool is_to_serve() {
  return socket_number > STDERR_FILENO;
}

Arguments serve() {
  say_hello();
  install_probes_ahead(getenv(protocol::probes_variable));
  while (!supervisor_is_gone()) {
    int taken[2];  // at its end when the child has taken a request
    if (failed(raw_syscall(__NR_pipe2, as_word(taken), O_CLOEXEC))) break;
    run_prepare_handlers();
    const long child = fork_sibling();
    if (child == 0) return wait_in_stock(taken);
    run_parent_handlers();
    tell(false, child);
    if (failed(child)) break;
    raw_syscall(__NR_close, taken[1]);
    wait_for_end_of(taken[0]);
    raw_syscall(__NR_close, taken[0]);
  }
  leave();
}

int call_main_somewhere_else(int (*main)(int, char**, char**), const Arguments& arguments,
                             bool stays) {
  if (stays) return main(arguments.count, arguments.words, environ);
  const uint64_t random = random_number();
  heap_gap = malloc(random % 8192);
  // Larger than the holes between libraries, or it would land in one of them.
  const uint64_t pages = 1024 + (random >> 16) % 1024;
  raw_syscall(__NR_mmap, 0, static_cast<long>(pages * protocol::page), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* volatile stack_gap = static_cast<char*>(alloca((random >> 32) % 8192));
  *stack_gap = 0;
  return main(arguments.count, arguments.words, environ);
}

namespace {

using Handler = void (*)();

struct Handlers {
  Handler prepare;
  Handler parent;
  Handler child;
};

constexpr int most_handlers = 64;
Handlers registered[most_handlers];
int registrations = 0;

int count() {
  return registrations < most_handlers ? registrations : most_handlers;
}

// The library that has registered it may have been unloaded since.
void run(Handler handler) {
  Dl_info info{};
  if (handler != nullptr && dladdr(reinterpret_cast<void*>(handler), &info) != 0) handler();
}

}  // namespace

bool too_many_fork_handlers() {
  return registrations > most_handlers;
}

// In the order that POSIX gives: the last one prepares first.
void run_prepare_handlers() {
  for (int i = count(); i-- > 0;) run(registered[i].prepare);
}

void run_parent_handlers() {
  for (int i = 0; i < count(); ++i) run(registered[i].parent);
}

void run_child_handlers() {
  for (int i = 0; i < count(); ++i) run(registered[i].child);
}

// What pthread_atfork calls.
HOOK(int, __register_atfork, (Handler prepare, Handler parent, Handler child, void* library)) {
  resolve_real_functions();
  const int number = __atomic_fetch_add(&registrations, 1, __ATOMIC_RELAXED);
  if (number < most_handlers) registered[number] = {prepare, parent, child};
  return real::__register_atfork(prepare, parent, child, library);
}

}  // namespace unflake::agent
