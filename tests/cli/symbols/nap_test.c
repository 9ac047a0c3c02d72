void nap(void);

int main(void) {
  nap();
  return 0;
}
