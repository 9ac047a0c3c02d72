void letter_put(void);
int letter_is_there(void);
