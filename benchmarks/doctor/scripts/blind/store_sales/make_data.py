import csv
import math

with open("sales.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["store", "day", "promo", "price", "holiday", "units"])
    for store in range(8):
        for day in range(40):
            promo = int((day * 7 + store) % 5 == 0)
            price = 3.0 + 0.2 * store + 0.5 * math.sin(day / 4)
            holiday = int(day % 13 == 0)
            units = 40 + 3 * store - 5 * price + 12 * promo + 8 * holiday + 4 * math.cos(day * 0.9)
            w.writerow([store, day, promo, round(price, 3), holiday, round(units, 3)])
