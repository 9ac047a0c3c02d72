// What an uncontended lock and unlock costs: ns per pair, the best of several rounds, in each of N
// threads that lock a mutex of their own. Prints the mean over the threads.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

namespace {

constexpr int pairs = 300'000;

double thread_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double ns_per_pair() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const double begin = thread_ns();
  for (int i = 0; i < pairs; ++i) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  return (thread_ns() - begin) / pairs;
}

double best_of_rounds() {
  double best = ns_per_pair();
  for (int round = 0; round < 30; ++round) best = std::min(best, ns_per_pair());
  return best;
}

}  // namespace

int main(int, char** argv) {
  std::vector<double> results(static_cast<size_t>(std::atoi(argv[1])));
  std::vector<std::thread> threads;
  for (double& result : results) threads.emplace_back([&result] { result = best_of_rounds(); });
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double result : results) sum += result;
  std::printf("%.3f\n", sum / static_cast<double>(results.size()));
}
