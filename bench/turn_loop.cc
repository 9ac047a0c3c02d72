// What threads that take turns do all the time. Prints the processor's time of one step in ns: that
// clock is nobody's to control, and a busy machine does not count.
#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

namespace {

constexpr int rounds = 15;

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Step>
double best_ns(int steps, Step step) {
  double best = 1e18;
  for (int round = 0; round < rounds; ++round) {
    const double begin = cpu_ns();
    for (int i = 0; i < steps; ++i) step();
    best = std::min(best, (cpu_ns() - begin) / steps);
  }
  return best;
}

// Of a thread that nobody else could come before: the others wait.
double calls(bool is_alone) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  sem_t end;
  sem_init(&end, 0, 0);
  std::thread waiting;
  if (!is_alone) waiting = std::thread([&] { sem_wait(&end); });
  const double pair = best_ns(20'000, [&] {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  sem_post(&end);
  if (!is_alone) waiting.join();
  return pair / 2;
}

// From one thread to another and back.
double switches() {
  constexpr int steps = 2'000;
  sem_t there, back;
  sem_init(&there, 0, 0);
  sem_init(&back, 0, 0);
  std::thread other([&] {
    for (int i = 0; i < rounds * steps; ++i) {
      sem_wait(&there);
      sem_post(&back);
    }
  });
  const double round_trip = best_ns(steps, [&] {
    sem_post(&there);
    sem_wait(&back);
  });
  other.join();
  return round_trip / 2;
}

int seats = 0;

double accesses() {
  std::thread other([] { seats = seats + 1; });
  other.join();
  sem_t end;
  sem_init(&end, 0, 0);
  std::thread waiting([&] {
    seats = seats + 1;
    sem_wait(&end);
  });
  const double update = best_ns(2'000, [] {
    seats = seats + 1;
    asm volatile("" ::: "memory");
  });
  sem_post(&end);
  waiting.join();
  return update;
}

double crossed() {
  pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
  sem_t locked;
  sem_init(&locked, 0, 0);
  pthread_mutex_lock(&first);
  std::thread other([&] {
    pthread_mutex_lock(&second);
    sem_post(&locked);
    pthread_mutex_lock(&first);
  });
  sem_wait(&locked);
  pthread_mutex_lock(&second);
  other.join();
  return 0;
}

double measure(const char* what) {
  if (std::strcmp(what, "alone") == 0) return calls(true);
  if (std::strcmp(what, "calls") == 0) return calls(false);
  if (std::strcmp(what, "switches") == 0) return switches();
  if (std::strcmp(what, "accesses") == 0) return accesses();
  return crossed();
}

}  // namespace

int main(int, char** argv) {
  std::printf("%.3f\n", measure(argv[1]));
}
